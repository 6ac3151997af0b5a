// A container from Go, with the client library that Debian packages: upload, ranged download, listing.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-storage-blob-go/azblob"
)

const developmentAccount = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
	"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
	"BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"

// The library takes no connection strings.
func settings(connectionString string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(connectionString, ";") {
		if name, value, isPair := strings.Cut(part, "="); isPair {
			found[name] = value
		}
	}
	return found
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	given, isGiven := os.LookupEnv("AZURE_STORAGE_CONNECTION_STRING")
	if !isGiven {
		given = developmentAccount
	}
	told := settings(given)
	credential, err := azblob.NewSharedKeyCredential(told["AccountName"], told["AccountKey"])
	if err != nil {
		return err
	}
	address, err := url.Parse(told["BlobEndpoint"])
	if err != nil {
		return err
	}
	pipeline := azblob.NewPipeline(credential, azblob.PipelineOptions{})
	service := azblob.NewServiceURL(*address, pipeline)
	container := service.NewContainerURL(fmt.Sprintf("go-%d", time.Now().UnixNano()))
	if _, err = container.Create(ctx, azblob.Metadata{}, azblob.PublicAccessNone); err != nil {
		return err
	}
	defer func() {
		if _, deleted := container.Delete(ctx, azblob.ContainerAccessConditions{}); err == nil {
			err = deleted
		}
	}()

	blob := container.NewBlockBlobURL("notes/one.txt")
	content := strings.Repeat("one two three ", 1000)
	if _, err = azblob.UploadBufferToBlockBlob(ctx, []byte(content), blob, azblob.UploadToBlockBlobOptions{
		BlockSize: 4096, Parallelism: 4,
	}); err != nil {
		return err
	}
	answer, err := blob.Download(ctx, 4, 3, azblob.BlobAccessConditions{}, false, azblob.ClientProvidedKeyOptions{})
	if err != nil {
		return err
	}
	part, err := io.ReadAll(answer.Body(azblob.RetryReaderOptions{}))
	if err != nil {
		return err
	}
	if string(part) != "two" {
		return fmt.Errorf("bytes 4 to 6 are %q", part)
	}
	var names []string
	for marker := (azblob.Marker{}); marker.NotDone(); {
		page, err := container.ListBlobsFlatSegment(ctx, marker, azblob.ListBlobsSegmentOptions{})
		if err != nil {
			return err
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, item.Name)
		}
		marker = page.NextMarker
	}
	if len(names) != 1 {
		return fmt.Errorf("the container lists %v", names)
	}
	fmt.Printf("%s has %d bytes\n", names[0], len(content))
	return nil
}

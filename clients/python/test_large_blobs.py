"""A blob of 1 GiB through the official blob client: blocks in parallel up, ranges in parallel down, nothing kept whole."""

import hashlib
import io
import os

from azure.storage.blob import BlobServiceClient

from larimar_server import new_name

MIB = 1 << 20
SIZE = 1024 * MIB
BLOCK = 8 * MIB
RANGE = 64 * MIB


class Source(io.RawIOBase):
    """Bytes of which no block is like another, made as they are read; keeps their digest."""

    def __init__(self, size):
        self.left = size
        self.turn = 0
        self.digest = hashlib.sha256()
        self.base = os.urandom(BLOCK)

    def readable(self):
        return True

    def read(self, size=-1):
        size = self.left if size < 0 else min(size, self.left)
        parts = []
        while size > 0:
            self.turn += 1
            part = (self.turn.to_bytes(8, "big") + self.base)[: min(size, BLOCK)]
            parts.append(part)
            size -= len(part)
            self.left -= len(part)
        read = b"".join(parts)
        self.digest.update(read)
        return read


def test_parallel_blocks_up_and_ranges_down_have_one_digest(server):
    sizes = {"max_block_size": BLOCK, "max_single_put_size": BLOCK, "max_single_get_size": BLOCK}
    settings = {**sizes, "max_chunk_get_size": BLOCK, "retry_total": 0}
    with BlobServiceClient.from_connection_string(server.connection_string(), **settings) as blobs:
        with blobs.create_container(new_name()) as container, container.get_blob_client("large") as blob:
            source = Source(SIZE)
            blob.upload_blob(source, length=SIZE, max_concurrency=4)
            assert source.left == 0
            assert blob.get_blob_properties().size == SIZE
            committed, uncommitted = blob.get_block_list("all")
            assert [block.size for block in committed] == [BLOCK] * (SIZE // BLOCK)
            assert uncommitted == []
            found = hashlib.sha256()
            for offset in range(0, SIZE, RANGE):
                found.update(blob.download_blob(offset=offset, length=RANGE, max_concurrency=4).readall())
            assert found.hexdigest() == source.digest.hexdigest()
            container.delete_container()

"""Containers and blobs through the official blob client."""

import base64
import hashlib
import os
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccountSasPermissions,
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContainerEncryptionScope,
    ContentSettings,
    CustomerProvidedEncryptionKey,
    ResourceTypes,
    RetentionPolicy,
    StandardBlobTier,
    StaticWebsite,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from larimar_server import ACCOUNT, CERTIFICATE, CERTIFICATE_KEY, KEY, Server, new_name
from test_tls import Tokens

MIB = 1 << 20
PAGE = 512


def in_an_hour():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def content(blob):
    return blob.download_blob().readall()


def blob_signature(blob, permission):
    return generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, account_key=KEY, permission=permission, expiry=in_an_hour()
    )


def readable(blob):
    """An address that the server itself can read from, as it does for everything from a URL."""
    return f"{blob.url}?{blob_signature(blob, 'r')}"


class TestContainers:
    def test_create_list_delete(self, blobs, refused):
        prefix = new_name()
        names = [f"{prefix}{letter}" for letter in "abc"]
        for name in names:
            blobs.create_container(name, metadata={"letter": name[-1]})
        assert [one.name for one in blobs.list_containers(name_starts_with=prefix)] == names
        pages = blobs.list_containers(name_starts_with=prefix, results_per_page=2, include_metadata=True).by_page()
        first, second = [list(page) for page in pages]
        assert [one.metadata["letter"] for one in first + second] == list("abc")
        with refused(409, "ContainerAlreadyExists"):
            blobs.create_container(names[0])
        for name in names:
            blobs.delete_container(name)
        assert list(blobs.list_containers(name_starts_with=prefix)) == []
        with refused(404, "ContainerNotFound"):
            blobs.delete_container(names[0])
        with refused(404, "ContainerNotFound"):
            blobs.get_container_client(names[0]).upload_blob("a", b"")

    def test_a_bad_name(self, blobs, refused):
        with refused(400, "InvalidResourceName"):
            blobs.create_container("a--b")

    def test_metadata_and_lease(self, container, refused):
        container.set_container_metadata({"color": "blue"})
        lease = container.acquire_lease(15)
        properties = container.get_container_properties()
        assert properties.metadata == {"color": "blue"}
        assert (properties.lease.state, properties.lease.status) == ("leased", "locked")
        with refused(412, "LeaseIdMissing"):
            container.delete_container()
        lease.release()
        assert container.get_container_properties().lease.state == "available"

    def test_public_access(self, container, refused):
        blob = container.upload_blob("open", b"for all")
        anonymous = BlobClient.from_blob_url(blob.url, retry_total=0)
        with refused(401, "NoAuthenticationInformation"):
            content(anonymous)
        container.set_container_access_policy({}, public_access="blob")
        assert content(anonymous) == b"for all"
        with refused(401, "NoAuthenticationInformation"):
            list(ContainerClient.from_container_url(container.url, retry_total=0).list_blobs())
        container.set_container_access_policy({}, public_access="container")
        listed = ContainerClient.from_container_url(container.url, retry_total=0).list_blobs()
        assert [one.name for one in listed] == ["open"]


class TestBlockBlobs:
    @pytest.mark.parametrize("size", [0, 1, 8 << 10, (8 << 10) + 1, MIB - 1, 3 * MIB])
    def test_sizes_come_back(self, container, size):
        data = os.urandom(size)
        blob = container.upload_blob("one", data, content_settings=ContentSettings(content_type="text/plain"))
        assert content(blob) == data
        properties = blob.get_blob_properties()
        assert (properties.size, properties.content_settings.content_type) == (size, "text/plain")
        if size > 1000:
            assert blob.download_blob(offset=size // 3, length=500).readall() == data[size // 3 : size // 3 + 500]

    def test_blocks_in_parallel(self, container):
        data = os.urandom(20 * MIB + 7)
        blob = container.upload_blob("large", data, max_concurrency=4)
        committed, uncommitted = blob.get_block_list("all")
        assert len(committed) == 21 and not uncommitted
        found = blob.download_blob(max_concurrency=4).readall()
        assert hashlib.sha256(found).digest() == hashlib.sha256(data).digest()

    def test_a_block_list_takes_what_it_names(self, container, refused):
        blob = container.get_blob_client("blocks")
        for number in range(3):
            blob.stage_block(f"{number:03}", b"x%d" % number)
        with refused(404, "BlobNotFound"):
            blob.get_blob_properties()
        assert len(blob.get_block_list("all")[1]) == 3
        with refused(400, "InvalidBlockList"):
            blob.commit_block_list([BlobBlock("999")])
        blob.commit_block_list([BlobBlock("002"), BlobBlock("000")])
        assert content(blob) == b"x2x0"
        assert blob.get_block_list("all")[1] == []

    def test_conditions(self, container, refused):
        blob = container.upload_blob("one", b"1")
        with refused(409, "BlobAlreadyExists"):
            container.upload_blob("one", b"2")
        etag = blob.get_blob_properties().etag
        matching = {"overwrite": True, "etag": etag, "match_condition": MatchConditions.IfNotModified}
        blob.upload_blob(b"2", **matching)
        with refused(412, "ConditionNotMet"):
            blob.upload_blob(b"3", **matching)
        assert content(blob) == b"2"

    def test_properties_metadata_tags_tier(self, blobs, container):
        mark = new_name()
        blob = container.upload_blob("one", b"1", metadata={"a": "1"}, tags={"mark": mark})
        blob.set_http_headers(ContentSettings(content_language="de", content_type="text/x"))
        blob.set_blob_metadata({"b": "2"})
        blob.set_standard_blob_tier("Cool")
        properties = blob.get_blob_properties()
        assert properties.metadata == {"b": "2"}
        assert (properties.content_settings.content_language, properties.blob_tier) == ("de", "Cool")
        assert blob.get_blob_tags() == {"mark": mark}
        assert [one.name for one in blobs.find_blobs_by_tags(f"\"mark\"='{mark}'")] == ["one"]

    def test_metadata_names_keep_their_case(self, blobs, container):
        metadata = {"docType": "1", "plain": "2", "_UP": "3"}
        blob = container.upload_blob("one", b"1", metadata=metadata)
        assert blob.get_blob_properties().metadata == metadata
        assert blob.download_blob().properties.metadata == metadata
        assert [one.metadata for one in container.list_blobs(include=["metadata"])] == [metadata]
        snapshot = container.get_blob_client("one", snapshot=blob.create_snapshot()["snapshot"])
        assert snapshot.get_blob_properties().metadata == metadata
        copy = container.get_blob_client("two")
        copy.start_copy_from_url(blob.url)
        assert copy.get_blob_properties().metadata == metadata
        blob.set_blob_metadata({"DOCTYPE": "4"})
        assert blob.get_blob_properties().metadata == {"DOCTYPE": "4"}
        container.set_container_metadata(metadata)
        assert container.get_container_properties().metadata == metadata
        listed = blobs.list_containers(name_starts_with=container.container_name, include_metadata=True)
        assert [one.metadata for one in listed] == [metadata]

    def test_lease(self, container, refused):
        blob = container.upload_blob("one", b"1")
        lease = blob.acquire_lease()
        with refused(412, "LeaseIdMissing"):
            blob.upload_blob(b"2", overwrite=True)
        blob.upload_blob(b"2", overwrite=True, lease=lease)
        with refused(409, "LeaseAlreadyPresent"):
            blob.acquire_lease()
        lease.release()
        blob.delete_blob()
        with refused(404, "BlobNotFound"):
            content(blob)

    def test_snapshots(self, container, refused):
        blob = container.upload_blob("one", b"old")
        snapshot = blob.create_snapshot()
        blob.upload_blob(b"new", overwrite=True)
        assert content(container.get_blob_client("one", snapshot=snapshot)) == b"old"
        with refused(409, "SnapshotsPresent"):
            blob.delete_blob()
        listed = list(container.list_blobs(include=["snapshots"]))
        assert [one.snapshot for one in listed] == [snapshot["snapshot"], None]
        blob.delete_blob(delete_snapshots="include")
        assert list(container.list_blobs(include=["snapshots"])) == []

    def test_a_wrong_checksum_stores_nothing(self, container, refused):
        blob = container.get_blob_client("one")
        with refused(400, "Md5Mismatch"):
            blob.stage_block("000", b"abc", validate_content=False, headers={"Content-MD5": "A" * 22 + "=="})
        assert list(container.list_blobs(include=["uncommittedblobs"])) == []


class TestAppendBlobs:
    def test_appends(self, container, refused):
        blob = container.get_blob_client("log")
        blob.create_append_blob()
        assert blob.append_block(b"abc")["blob_append_offset"] == "0"
        assert blob.append_block(b"def", appendpos_condition=3)["blob_append_offset"] == "3"
        with refused(412, "AppendPositionConditionNotMet"):
            blob.append_block(b"x", appendpos_condition=3)
        with refused(412, "MaxBlobSizeConditionNotMet"):
            blob.append_block(b"x", maxsize_condition=6)
        blob.seal_append_blob()
        with refused(409, "BlobIsSealed"):
            blob.append_block(b"x")
        assert content(blob) == b"abcdef"

    def test_the_wrong_type(self, container, refused):
        blob = container.upload_blob("one", b"1")
        with refused(409, "InvalidBlobType"):
            blob.append_block(b"x")


class TestPageBlobs:
    def test_ranges_and_their_difference(self, container, refused):
        blob = container.get_blob_client("disk")
        blob.create_page_blob(8 * PAGE)
        blob.upload_page(b"a" * PAGE, PAGE, PAGE)
        blob.upload_page(b"b" * PAGE, 3 * PAGE, PAGE)
        zeros = b"\0" * PAGE
        assert content(blob) == zeros + b"a" * PAGE + zeros + b"b" * PAGE + 4 * zeros
        snapshot = blob.create_snapshot()
        blob.upload_page(b"c" * PAGE, 5 * PAGE, PAGE)
        blob.clear_page(PAGE, PAGE)
        ranges = [(one.start, one.end) for one in blob.list_page_ranges()]
        assert ranges == [(3 * PAGE, 4 * PAGE - 1), (5 * PAGE, 6 * PAGE - 1)]
        changed = blob.list_page_ranges(previous_snapshot=snapshot["snapshot"])
        assert [(one.start, one.cleared) for one in changed] == [(PAGE, True), (5 * PAGE, False)]
        with refused(416, "InvalidPageRange"):
            blob.upload_page(b"x" * PAGE, 8 * PAGE, PAGE)
        blob.resize_blob(2 * PAGE)
        assert content(blob) == 2 * zeros
        assert blob.set_sequence_number("update", "7")["blob_sequence_number"] == 7


    def test_pages_from_a_url_are_bounded(self, container, refused):
        """A wide range used to be answered with 201 and stored nothing."""
        source = container.get_blob_client("sparse")
        source.create_page_blob(64 * MIB)
        source.upload_page(b"a" * PAGE, 0, PAGE)
        target = container.get_blob_client("target")
        target.create_page_blob(64 * MIB)
        with refused(416, "InvalidPageRange"):
            target.upload_pages_from_url(readable(source), 0, 32 * MIB, 0)
        target.upload_pages_from_url(readable(source), 0, PAGE, 0)
        assert target.download_blob(offset=0, length=PAGE).readall() == b"a" * PAGE
        with refused(413, "RequestBodyTooLarge"):
            log = container.get_blob_client("log")
            log.create_append_blob()
            big = container.get_blob_client("big")
            big.create_page_blob(101 * MIB)
            log.append_block_from_url(readable(big))


class TestLists:
    def test_prefix_delimiter_and_pages(self, container):
        names = ["a/1", "a/2", "b", "c/x/1", "c/y"]
        for name in reversed(names):
            container.upload_blob(name, b"")
        assert [one.name for one in container.list_blobs()] == names
        assert [one.name for one in container.list_blobs(name_starts_with="a/")] == names[:2]
        assert sorted(one.name for one in container.walk_blobs()) == ["a/", "b", "c/"]
        assert sorted(one.name for one in container.walk_blobs(name_starts_with="c/")) == ["c/x/", "c/y"]
        pages = [[one.name for one in page] for page in container.list_blobs(results_per_page=2).by_page()]
        assert pages == [names[:2], names[2:4], names[4:]]


class TestCopies:
    def test_copies_inside_the_account(self, container):
        data = os.urandom(5 * MIB)
        source = container.upload_blob("source", data, metadata={"k": "v"})
        copy = container.get_blob_client("copy")
        assert copy.start_copy_from_url(source.url)["copy_status"] == "success"
        assert content(copy) == data
        properties = copy.get_blob_properties()
        assert (properties.copy.status, properties.metadata) == ("success", {"k": "v"})
        small = container.upload_blob("small", b"hello")
        container.get_blob_client("other").upload_blob_from_url(readable(small))
        assert content(container.get_blob_client("other")) == b"hello"

    def test_a_missing_source(self, container, refused):
        with refused(404, "CannotVerifyCopySource"):
            container.get_blob_client("copy").start_copy_from_url(container.get_blob_client("none").url)

    def test_a_signature_for_one_blob_does_not_read_another(self, container, refused):
        """A request with a signature for its target used to copy any blob of the account."""
        secret = container.upload_blob("secret", b"secret")
        target = container.get_blob_client("target")
        signature = blob_signature(target, "racwd")
        holder = BlobClient.from_blob_url(f"{target.url}?{signature}", retry_total=0)
        with refused(403, "CannotVerifyCopySource"):
            holder.start_copy_from_url(secret.url)
        with refused(403, "CannotVerifyCopySource"):
            holder.upload_blob_from_url(f"{secret.url}?{blob_signature(target, 'r')}")
        holder.start_copy_from_url(f"{secret.url}?{blob_signature(secret, 'r')}")
        assert content(target) == b"secret"

    def test_a_source_is_read_as_somebody_else_would(self, container, refused):
        """The request's own key used to open every source; the service takes a signature, a token, or what is public."""
        source = container.upload_blob("source", b"hello")
        copy = container.get_blob_client("copy")
        for act in [
            lambda: copy.upload_blob_from_url(source.url),
            lambda: copy.start_copy_from_url(source.url, requires_sync=True),
            lambda: copy.stage_block_from_url("000", source.url),
        ]:
            with pytest.raises(HttpResponseError) as error:
                act()
            headers = error.value.response.headers
            assert error.value.status_code == 401
            assert headers["x-ms-error-code"] == "CannotVerifyCopySource"
            assert headers["x-ms-copy-source-status-code"] == "401"
            assert headers["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        with refused(304, "CannotVerifyCopySource"):
            copy.upload_blob_from_url(readable(source), source_if_modified_since=later)
        copy.upload_blob_from_url(readable(source), source_if_unmodified_since=later)
        assert content(copy) == b"hello"

    def test_sealed_blobs(self, container, refused):
        log = container.get_blob_client("log")
        log.create_append_blob()
        log.append_block(b"a")
        log.seal_append_blob()
        for name, sealed in [("as it was", None), ("opened", False)]:
            copy = container.get_blob_client(name)
            more = {} if sealed is None else {"seal_destination_blob": sealed}
            copy.start_copy_from_url(log.url, **more)
            if sealed is None:
                with refused(409, "BlobIsSealed"):
                    copy.append_block(b"b")
            else:
                copy.append_block(b"b")

    def test_copies_between_accounts(self, refused):
        if os.environ.get("LARIMAR_ENDPOINT"):
            pytest.skip("needs a server of its own")
        with Server("--account", f"alice:{KEY}", "--account", f"bob:{KEY}") as server:
            address = server.ready["blob"]
            alice = BlobServiceClient(f"{address}/alice", {"account_name": "alice", "account_key": KEY}, retry_total=0)
            bob = BlobServiceClient(f"{address}/bob", {"account_name": "bob", "account_key": KEY}, retry_total=0)
            source = alice.create_container("box").upload_blob("source", b"hello")
            copy = bob.create_container("box").get_blob_client("copy")
            with refused(401, "CannotVerifyCopySource"):
                copy.start_copy_from_url(source.url)
            signature = generate_blob_sas(
                "alice", "box", "source", account_key=KEY, permission="r", expiry=in_an_hour()
            )
            copy.start_copy_from_url(f"{source.url}?{signature}")
            assert content(copy) == b"hello"
            # Nobody learns from here which containers of another account there are.
            missing = alice.get_blob_client("other", "source")
            with refused(401, "CannotVerifyCopySource"):
                copy.start_copy_from_url(missing.url)
            with refused(403, "CannotVerifyCopySource"):
                copy.start_copy_from_url(f"{missing.url}?{signature}")
            missing = alice.get_blob_client("box", "missing")
            with refused(401, "CannotVerifyCopySource"):
                copy.start_copy_from_url(missing.url)
            source.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
            with refused(409, "CannotVerifyCopySource"):
                copy.start_copy_from_url(f"{source.url}?{signature}", standard_blob_tier=StandardBlobTier.HOT)

    def test_a_source_on_another_server(self, container, refused):
        source = container.upload_blob("source", b"hello")
        port = int(urlsplit(source.url).port)
        with refused(404, "CannotVerifyCopySource"):
            container.get_blob_client("copy").start_copy_from_url(source.url.replace(f":{port}/", f":{port + 1}/"))

    def test_the_way_out_of_the_archive(self, container, refused):
        source = container.upload_blob("source", b"hello", standard_blob_tier=StandardBlobTier.ARCHIVE)
        copy = container.get_blob_client("copy")
        for more in [{}, {"standard_blob_tier": StandardBlobTier.ARCHIVE}]:
            with refused(409, "BlobArchived"):
                copy.start_copy_from_url(source.url, **more)
        copy.start_copy_from_url(source.url, standard_blob_tier=StandardBlobTier.COOL)
        assert (content(copy), copy.get_blob_properties().blob_tier) == (b"hello", "Cool")
        with refused(409, "BlobArchived"):
            source.start_copy_from_url(source.url, standard_blob_tier=StandardBlobTier.HOT)

    def test_the_hash_of_a_source(self, container, refused):
        source = container.upload_blob("source", b"hello", content_settings=ContentSettings(content_type="text/plain"))
        copy = container.get_blob_client("copy")
        told = []

        def copied(md5=None):
            expected = {} if md5 is None else {"x-ms-source-content-md5": base64.b64encode(md5).decode()}
            hook = lambda response: told.append(response.http_response.headers.get("Content-MD5"))
            copy.start_copy_from_url(readable(source), requires_sync=True, headers=expected, raw_response_hook=hook)

        copied()
        copied(hashlib.md5(b"hello").digest())
        assert told == [None, base64.b64encode(hashlib.md5(b"hello").digest()).decode()]
        with refused(400, "Md5Mismatch"):
            copied(hashlib.md5(b"other").digest())


class TestAnswers:
    def test_what_fails_without_a_body_tells_of_none(self, container):
        with pytest.raises(HttpResponseError) as error:
            container.get_blob_client("none").get_blob_properties()
        headers = error.value.response.headers
        assert (headers["x-ms-error-code"], headers.get("Content-Type")) == ("BlobNotFound", None)

    def test_a_range_outside_tells_the_size(self, container):
        for size in [0, 5]:
            blob = container.upload_blob(f"{size}", bytes(size))
            with pytest.raises(HttpResponseError) as error:
                blob.download_blob(offset=size, length=3)
            assert error.value.status_code == 416
            assert error.value.response.headers["Content-Range"] == f"bytes */{size}"

    def test_a_backslash_is_a_slash(self, container):
        blob = container.upload_blob("a\\b", b"1")
        assert [one.name for one in container.list_blobs()] == ["a/b"]
        signature = generate_blob_sas(
            ACCOUNT, blob.container_name, "a/b", account_key=KEY, permission="r", expiry=in_an_hour()
        )
        assert content(BlobClient.from_blob_url(f"{blob.url}?{signature}")) == b"1"

    def test_snapshots_are_leased_by_nobody(self, container):
        blob = container.upload_blob("one", b"1")
        snapshot = blob.create_snapshot()
        blob.acquire_lease()
        lease = container.get_blob_client(blob.blob_name, snapshot=snapshot).get_blob_properties().lease
        assert (lease.state, lease.status, lease.duration) == (None, None, None)

    def test_the_stored_hash_is_the_one_that_counts(self, container, refused):
        right, wrong = [hashlib.md5(text).digest() for text in (b"hello", b"other")]
        text = {md5: base64.b64encode(md5).decode() for md5 in (right, wrong)}

        def put(sent, stored):
            settings = ContentSettings(content_md5=bytearray(stored))
            headers = {"Content-MD5": text[sent]}
            container.upload_blob("one", b"hello", overwrite=True, content_settings=settings, headers=headers)

        put(wrong, right)
        with refused(400, "Md5Mismatch"):
            put(right, wrong)
        properties = container.get_blob_client("one").get_blob_properties()
        assert properties.content_settings.content_md5 == bytearray(right)

    def test_sealing_changes_no_etag(self, container):
        log = container.get_blob_client("log")
        log.create_append_blob()
        etag = log.append_block(b"a")["etag"]
        assert log.seal_append_blob()["etag"] == etag
        assert log.get_blob_properties().etag == etag

    def test_tags_with_blanks_at_their_ends(self, container, refused):
        blob = container.upload_blob("one", b"1")
        blob.set_blob_tags({" key 1 ": " v "})
        assert blob.get_blob_tags() == {" key 1 ": " v "}
        assert blob.get_blob_tags(if_tags_match_condition="\" key 1 \"=' v '") == {" key 1 ": " v "}
        with refused(412, "ConditionNotMet"):
            blob.get_blob_tags(if_tags_match_condition="missing<>'v'")
        for condition in ["key=1", "@container='box'", "key='$'"]:
            with refused(400, "InvalidHeaderValue"):
                blob.get_blob_tags(if_tags_match_condition=condition)

    def test_reads_of_what_must_not_be_there_are_refused(self, container, refused):
        """Whether it is there or not: older clients go on with an upload only after this error."""
        container.upload_blob("there", b"1")
        for name in ["there", "missing"]:
            blob = container.get_blob_client(name)
            for read in [blob.get_blob_properties, blob.download_blob]:
                with refused(400, "UnsatisfiableCondition"):
                    read(match_condition=MatchConditions.IfMissing)

    def test_a_tier_that_was_set_is_not_inferred(self, container):
        blob = container.upload_blob("one", b"1")
        assert blob.get_blob_properties().blob_tier_inferred is True
        blob.set_standard_blob_tier(StandardBlobTier.COOL)
        assert blob.get_blob_properties().blob_tier_inferred is None


class TestSignatures:
    def test_each_kind(self, container, refused):
        blob = container.upload_blob("one", b"1")
        signed = BlobClient.from_blob_url(f"{blob.url}?{blob_signature(blob, 'r')}", retry_total=0)
        assert content(signed) == b"1"
        with refused(403, "AuthorizationPermissionMismatch"):
            signed.upload_blob(b"2", overwrite=True)
        other = container.upload_blob("two", b"2")
        with refused(403, "AuthenticationFailed"):
            content(BlobClient.from_blob_url(f"{other.url}?{blob_signature(blob, 'r')}", retry_total=0))
        signature = generate_container_sas(
            ACCOUNT, container.container_name, account_key=KEY, permission="rl", expiry=in_an_hour()
        )
        listed = ContainerClient.from_container_url(f"{container.url}?{signature}", retry_total=0).list_blobs()
        assert [one.name for one in listed] == ["one", "two"]
        signature = generate_account_sas(
            ACCOUNT, KEY, ResourceTypes(object=True), AccountSasPermissions(read=True), in_an_hour()
        )
        assert content(BlobClient.from_blob_url(f"{blob.url}?{signature}", retry_total=0)) == b"1"


    def test_rights_are_not_stretched(self, container, refused):
        blob = container.upload_blob("one", b"1", tags={"secret": "tag"})
        holder = BlobClient.from_blob_url(f"{blob.url}?{blob_signature(blob, 'y')}", retry_total=0)
        with refused(403, "AuthorizationPermissionMismatch"):
            holder.delete_blob()
        holder = BlobClient.from_blob_url(f"{blob.url}?{blob_signature(blob, 'd')}", retry_total=0)
        with refused(403, "AuthorizationPermissionMismatch"):
            holder.acquire_lease()
        target = container.get_blob_client("two")
        writer = BlobClient.from_blob_url(f"{target.url}?{blob_signature(target, 'racw')}", retry_total=0)
        with refused(403, "AuthorizationPermissionMismatch"):
            writer.start_copy_from_url(f"{blob.url}?{blob_signature(blob, 'r')}", requires_sync=True, tags="COPY")
        assert not target.exists()


class TestService:
    def test_properties_and_soft_delete(self, own_server, refused):
        with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as blobs:
            blobs.set_service_properties(
                delete_retention_policy=RetentionPolicy(True, 5),
                static_website=StaticWebsite(enabled=True, index_document="i.html"),
            )
            properties = blobs.get_service_properties()
            assert properties["delete_retention_policy"].days == 5
            assert properties["static_website"].index_document == "i.html"
            container = blobs.create_container(new_name())
            blob = container.upload_blob("one", b"1")
            blob.delete_blob()
            assert not blob.exists()
            assert [one.deleted for one in container.list_blobs(include=["deleted"])] == [True]
            blob.undelete_blob()
            assert content(blob) == b"1"
            assert blobs.get_account_information()["sku_name"]

    def test_a_batch(self, container):
        for name in "abc":
            container.upload_blob(name, b"")
        answers = list(container.delete_blobs("a", "b", "none", raise_on_any_failure=False))
        assert [answer.status_code for answer in answers] == [202, 202, 404]
        assert [one.name for one in container.list_blobs()] == ["c"]


class TestEncryption:
    """Nothing is encrypted with keys and scopes: they are refused, unless the server is told to take them all the same.
    Then who has not the key, or names another scope, is refused."""

    def test_nothing_that_would_not_be_kept_is_promised(self, blobs, container, refused):
        blob = container.get_blob_client("scoped")
        with refused(400, "UnsupportedHeader"):
            blob.upload_blob(b"1", encryption_scope="one")
        assert not blob.exists()
        scope = ContainerEncryptionScope(default_encryption_scope="one")
        with refused(400, "UnsupportedHeader"):
            blobs.create_container(new_name(), container_encryption_scope=scope)

    @pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts a server of its own")
    def test_scopes(self, refused):
        with Server("--unencrypted-customer-keys") as server:
            blobs = BlobServiceClient.from_connection_string(server.connection_string(), retry_total=0)
            container = blobs.create_container("box")
            blob = container.get_blob_client("scoped")
            assert blob.upload_blob(b"1", encryption_scope="one")["encryption_scope"] == "one"
            assert blob.get_blob_properties().encryption_scope == "one"
            assert [found.encryption_scope for found in container.list_blobs()] == ["one"]
            with refused(409, "BlobDoesNotMatchEncryptionScope"):
                blob.set_blob_metadata({"a": "1"}, encryption_scope="two")
            scope = ContainerEncryptionScope("one", prevent_encryption_scope_override=True)
            strict = blobs.create_container("strict", container_encryption_scope=scope)
            with refused(403, "RequestForbiddenByContainerEncryptionPolicy"):
                strict.upload_blob("other", b"", encryption_scope="two")
            assert strict.upload_blob("own", b"").get_blob_properties().encryption_scope == "one"

    @pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="the client sends keys over TLS only")
    def test_customers_keys(self, refused):
        def key(byte):
            key = bytes([byte]) * 32
            text = [base64.b64encode(part).decode() for part in (key, hashlib.sha256(key).digest())]
            return CustomerProvidedEncryptionKey(*text)

        keys = ["--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE_KEY, "--unencrypted-customer-keys"]
        with Server(*keys) as server:
            options = {"connection_verify": str(CERTIFICATE), "retry_total": 0}
            address = f"{server.ready['blob']}/{ACCOUNT}"
            blobs = BlobServiceClient(address, {"account_name": ACCOUNT, "account_key": KEY}, **options)
            blob = blobs.create_container("box").get_blob_client("locked")
            blob.stage_block("000", b"secret", cpk=key(1))
            with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
                blob.commit_block_list([BlobBlock("000")])
            blob.commit_block_list([BlobBlock("000")], cpk=key(1))
            assert blob.download_blob(cpk=key(1)).readall() == b"secret"
            with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
                content(blob)
            with refused(409, "BlobCustomerSpecifiedEncryptionMismatch"):
                blob.download_blob(cpk=key(2))
            blob.upload_blob(b"open", overwrite=True)
            with refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption"):
                blob.download_blob(cpk=key(1))


@pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts a server of its own")
class TestVersions:
    @pytest.fixture
    def versioned(self):
        with Server("--versioned-account", ACCOUNT) as server:
            with BlobServiceClient.from_connection_string(server.connection_string(), retry_total=0) as blobs:
                yield blobs.create_container(new_name())

    def test_a_life_in_versions(self, versioned, refused):
        blob = versioned.get_blob_client("one")
        ids = [blob.upload_blob(text, overwrite=True)["version_id"] for text in (b"first", b"second")]
        ids.append(blob.set_blob_metadata({"a": "1"})["version_id"])
        assert ids == sorted(ids) and len(set(ids)) == 3
        assert blob.download_blob(version_id=ids[0]).readall() == b"first"
        assert blob.get_blob_properties().is_current_version
        listed = [(found.version_id, found.is_current_version) for found in versioned.list_blobs(include="versions")]
        assert listed == [(ids[0], None), (ids[1], None), (ids[2], True)]
        plain = [(found.name, bool(found.version_id), found.is_current_version) for found in versioned.list_blobs()]
        assert plain == [("one", True, True)]
        with refused(403, "OperationNotAllowedOnRootBlob"):
            blob.delete_blob(version_id=ids[2])
        blob.delete_blob(version_id=ids[1])
        with refused(404, "BlobNotFound"):
            blob.download_blob(version_id=ids[1])
        blob.delete_blob()
        assert not blob.exists()
        listed = list(versioned.list_blobs(include="deletedwithversions"))
        assert [(found.name, found.has_versions_only) for found in listed] == [("one", True)]
        blob.start_copy_from_url(f"{blob.url}?versionid={ids[0]}")
        assert content(blob) == b"first"

    def test_versions_of_pages_keep_their_bytes(self, versioned):
        blob = versioned.get_blob_client("pages")
        first = blob.create_page_blob(4 * PAGE)["version_id"]
        blob.upload_page(b"a" * PAGE, 0, PAGE)
        blob.create_page_blob(2 * PAGE)
        blob.upload_page(b"b" * PAGE, PAGE, PAGE)
        assert blob.download_blob(version_id=first).readall() == b"a" * PAGE + bytes(3 * PAGE)
        assert content(blob) == bytes(PAGE) + b"b" * PAGE

    def test_a_signature_deletes_versions_only_with_its_own_right(self, versioned, refused):
        blob = versioned.get_blob_client("one")
        first = blob.upload_blob(b"1")["version_id"]
        blob.upload_blob(b"2", overwrite=True)
        holder = BlobClient.from_blob_url(f"{blob.url}?{blob_signature(blob, 'd')}", retry_total=0)
        with refused(403, "AuthorizationPermissionMismatch"):
            holder.delete_blob(version_id=first)
        holder = BlobClient.from_blob_url(f"{blob.url}?{blob_signature(blob, 'x')}", retry_total=0)
        holder.delete_blob(version_id=first)


def test_whoever_holds_the_lease_writes_over_what_is_there(container, refused):
    """`If-None-Match: *` used to be asked before the lease, so that this default of the client refused the holder."""
    blob = container.upload_blob("leased", b"1")
    lease = blob.acquire_lease()
    blob.upload_blob(b"2", lease=lease)
    with refused(412, "LeaseIdMissing"):
        blob.upload_blob(b"3")
    lease.release()
    with refused(409, "BlobAlreadyExists"):
        blob.upload_blob(b"3")


def test_policies_that_say_nothing(container):
    container.set_container_access_policy({"empty": None})
    [policy] = container.get_container_access_policy()["signed_identifiers"]
    assert (policy.id, policy.access_policy) == ("empty", None)


def test_lists_begin_and_end_where_they_are_told(container):
    for name in ["a", "b/1", "b/2", "c"]:
        container.upload_blob(name, b"")
    assert [found.name for found in container.list_blobs(start_from="b/1")] == ["b/1", "b/2", "c"]


def test_pages_that_were_cleared_since_a_snapshot(container):
    blob = container.get_blob_client("pages")
    blob.create_page_blob(4 * PAGE)
    before = blob.create_snapshot()
    blob.upload_page(b"a" * 3 * PAGE, 0, 3 * PAGE)
    blob.create_snapshot()
    blob.clear_page(PAGE, PAGE)
    changed = [(one.start // PAGE, one.cleared) for one in blob.list_page_ranges(previous_snapshot=before)]
    assert changed == [(0, False), (1, True), (2, False)]


def test_conditions_on_tiers_and_tags(container, refused):
    blob = container.upload_blob("one", b"1", standard_blob_tier=StandardBlobTier.COOL)
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    with refused(412, "ConditionNotMet"):
        blob.set_blob_tags({"a": "1"}, if_modified_since=later)
    blob.set_blob_tags({"a": "1"}, if_unmodified_since=later)
    with refused(412, "ConditionNotMet"):
        blob.get_blob_tags(if_modified_since=later)
    with refused(412, "ConditionNotMet"):
        blob.delete_blob(access_tier_if_modified_since=later)
    blob.delete_blob(access_tier_if_unmodified_since=later)


@pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="tokens are taken over TLS only")
def test_user_delegation_keys(refused):
    with Server("--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE_KEY, "--oauth", "basic") as server:
        options = {"connection_verify": str(CERTIFICATE), "retry_total": 0}
        address = f"{server.ready['blob']}/{ACCOUNT}"
        blobs = BlobServiceClient(address, Tokens(), **options)
        now = datetime.now(timezone.utc)
        key = blobs.get_user_delegation_key(now, now + timedelta(hours=1))
        container = blobs.create_container("box")
        blob = container.upload_blob("one", b"1")

        def holder(key, **more):
            signature = generate_blob_sas(
                ACCOUNT, "box", "one", user_delegation_key=key, permission="r", expiry=in_an_hour(), **more
            )
            return BlobClient.from_blob_url(f"{blob.url}?{signature}", **options)

        assert content(holder(key)) == b"1"
        with refused(403, "AuthorizationPermissionMismatch"):
            holder(key).upload_blob(b"2", overwrite=True)
        with refused(403, "AuthenticationFailed"):
            content(holder(key, request_headers={"x-ms-client-request-id": "bound to this"}))
        other = blobs.get_user_delegation_key(now, now + timedelta(hours=2))
        other.signed_expiry = key.signed_expiry
        with refused(403, "AuthenticationFailed"):
            content(holder(other))
        # Who may create a blob may do so block by block, but neither stages nor commits over one that is there.
        two = container.get_blob_client("two")
        signature = generate_blob_sas(
            ACCOUNT, "box", "two", user_delegation_key=key, permission="c", expiry=in_an_hour()
        )
        creator = BlobClient.from_blob_url(f"{two.url}?{signature}", **options)
        creator.stage_block("000", b"2")
        creator.commit_block_list([BlobBlock("000")])
        assert content(two) == b"2"
        with refused(403, "UnauthorizedBlobOverwrite"):
            creator.stage_block("000", b"3")
        with refused(403, "UnauthorizedBlobOverwrite"):
            creator.commit_block_list([])
        three = container.get_blob_client("three")
        by_account = BlobClient.from_blob_url(f"{three.url}?{blob_signature(three, 'c')}", **options)
        with refused(403, "AuthorizationPermissionMismatch"):
            by_account.stage_block("000", b"3")
        by_key = BlobServiceClient(address, {"account_name": ACCOUNT, "account_key": KEY}, **options)
        with refused(403, "AuthenticationFailed"):
            by_key.get_user_delegation_key(now, now + timedelta(hours=1))


def test_blobs_survive_kill_9(own_server):
    """What was acknowledged is there after the process is killed, and blocks that were staged can be committed."""
    with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as blobs:
        container = blobs.create_container(new_name())
        name = container.container_name
        data = {f"b{size}": os.urandom(size) for size in (10, 9000, 200_000, 5 * MIB)}
        for key, value in data.items():
            container.upload_blob(key, value)
        container.get_blob_client("staged").stage_block("000", b"staged")
    own_server.kill()
    own_server.start()
    with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as blobs:
        container = blobs.get_container_client(name)
        for key, value in data.items():
            assert content(container.get_blob_client(key)) == value
        staged = container.get_blob_client("staged")
        staged.commit_block_list([BlobBlock("000")])
        assert content(staged) == b"staged"

"""Containers and blobs through the official blob client."""

import hashlib
import os
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.storage.blob import (
    AccountSasPermissions,
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    ResourceTypes,
    RetentionPolicy,
    StaticWebsite,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from larimar_server import ACCOUNT, KEY, new_name

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
        with refused(404, "ResourceNotFound"):
            content(anonymous)
        container.set_container_access_policy({}, public_access="blob")
        assert content(anonymous) == b"for all"
        with refused(404, "ResourceNotFound"):
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
            target.upload_pages_from_url(source.url, 0, 32 * MIB, 0)
        target.upload_pages_from_url(source.url, 0, PAGE, 0)
        assert target.download_blob(offset=0, length=PAGE).readall() == b"a" * PAGE
        with refused(413, "RequestBodyTooLarge"):
            log = container.get_blob_client("log")
            log.create_append_blob()
            big = container.get_blob_client("big")
            big.create_page_blob(101 * MIB)
            log.append_block_from_url(big.url)


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
        container.get_blob_client("other").upload_blob_from_url(small.url)
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
        with refused(404, "CannotVerifyCopySource"):
            holder.start_copy_from_url(secret.url)
        with refused(404, "CannotVerifyCopySource"):
            holder.upload_blob_from_url(f"{secret.url}?{blob_signature(target, 'r')}")
        holder.start_copy_from_url(f"{secret.url}?{blob_signature(secret, 'r')}")
        assert content(target) == b"secret"


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

"""Queues and messages through the official queue client: every operation, and what it refuses."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    RetentionPolicy,
    generate_account_sas,
    generate_queue_sas,
)

from larimar_server import ACCOUNT, KEY, new_name


def in_minutes(minutes):
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


def texts(messages):
    return [message.content for message in messages]


class TestQueues:
    def test_create_list_delete(self, queues, refused):
        prefix = new_name()
        names = [f"{prefix}{letter}" for letter in "abcd"]
        for name in names:
            queues.create_queue(name, metadata={"letter": name[-1]})
        assert [queue.name for queue in queues.list_queues(name_starts_with=prefix)] == names
        pages = queues.list_queues(name_starts_with=prefix, results_per_page=3, include_metadata=True).by_page()
        first, second = [list(page) for page in pages]
        assert [queue.name for queue in first + second] == names
        assert [queue.metadata["letter"] for queue in first + second] == list("abcd")
        assert list(queues.list_queues(name_starts_with=prefix))[0].metadata is None
        for name in names:
            queues.delete_queue(name)
        assert list(queues.list_queues(name_starts_with=prefix)) == []
        with refused(404, "QueueNotFound"):
            queues.delete_queue(names[0])

    def test_a_name_that_is_taken(self, queues, queue, refused):
        # The client makes an error of the service's 204.
        with pytest.raises(ResourceExistsError):
            queues.create_queue(queue.queue_name)
        with refused(409, "QueueAlreadyExists"):
            queues.create_queue(queue.queue_name, metadata={"other": "metadata"})

    @pytest.mark.parametrize(
        "name, code",
        [("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("Upper", "InvalidResourceName"),
         ("two--dashes", "InvalidResourceName"), ("-dash", "InvalidResourceName"), ("啊齄丂狛狜", "InvalidResourceName")],
    )
    def test_names_that_no_queue_has(self, queues, refused, name, code):
        with refused(400, code):
            queues.create_queue(name)

    def test_metadata_and_count(self, queue):
        queue.set_queue_metadata({"hello": "world", "number": "43"})
        for text in "abc":
            queue.send_message(text)
        properties = queue.get_queue_properties()
        assert properties.metadata == {"hello": "world", "number": "43"}
        assert properties.approximate_message_count == 3
        queue.receive_message()
        assert queue.get_queue_properties().approximate_message_count == 3
        queue.set_queue_metadata({"docType": "1", "plain": "2"})
        assert queue.get_queue_properties().metadata == {"docType": "1", "plain": "2"}
        queue.set_queue_metadata({})
        assert queue.get_queue_properties().metadata == {}

    def test_policies(self, server, queue, refused):
        assert queue.get_queue_access_policy() == {}
        policy = AccessPolicy(permission=QueueSasPermissions(read=True), start=in_minutes(-5), expiry=in_minutes(5))
        queue.set_queue_access_policy({"pol": policy, "empty": None})
        found = queue.get_queue_access_policy()
        assert (found["pol"].permission, found["empty"].permission) == ("r", None)
        queue.send_message("hello")
        sas = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, policy_id="pol")
        reader = QueueClient(server.queue_endpoint(), queue.queue_name, credential=sas, retry_total=0)
        assert texts(reader.peek_messages()) == ["hello"]
        queue.set_queue_access_policy({})
        with refused(403, "AuthenticationFailed"):
            reader.peek_messages()

    def test_settings_and_statistics(self, server, queues):
        retention = RetentionPolicy(enabled=True, days=5)
        queues.set_service_properties(
            analytics_logging=QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention),
            hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=retention),
            cors=[CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=7)],
        )
        found = queues.get_service_properties()
        assert found["analytics_logging"].read and found["analytics_logging"].retention_policy.days == 5
        assert found["hour_metrics"].include_apis and not found["minute_metrics"].enabled
        assert [rule.max_age_in_seconds for rule in found["cors"]] == [7]
        queues.set_service_properties(cors=[])
        assert queues.get_service_properties()["cors"] == []
        secondary = server.queue_endpoint().split("://")[1] + "-secondary"
        key = {"account_name": ACCOUNT, "account_key": KEY}
        client = QueueServiceClient(server.queue_endpoint(), key, secondary_hostname=secondary, retry_total=0)
        assert client.get_service_stats()["geo_replication"]["status"] == "live"


class TestMessages:
    def test_send_receive_delete(self, queue):
        sent = [queue.send_message(f"message {number}") for number in range(4)]
        assert sent[0].pop_receipt and sent[0].expires_on - sent[0].inserted_on == timedelta(days=7)
        peeked = queue.peek_messages(max_messages=32)
        assert texts(peeked) == [f"message {number}" for number in range(4)]
        assert (peeked[0].pop_receipt, peeked[0].next_visible_on, peeked[0].dequeue_count) == (None, None, 0)
        received = list(queue.receive_messages(messages_per_page=2, visibility_timeout=20))
        assert texts(received) == texts(peeked)
        assert [message.dequeue_count for message in received] == [1] * 4
        assert queue.receive_message() is None
        for message in received:
            queue.delete_message(message)
        assert queue.get_queue_properties().approximate_message_count == 0

    def test_a_message_comes_back(self, queue, refused):
        queue.send_message("again")
        first = queue.receive_message(visibility_timeout=1)
        time.sleep(1.2)
        second = queue.receive_message(visibility_timeout=30)
        assert (second.id, second.dequeue_count) == (first.id, 2)
        with refused(404, "MessageNotFound"):
            queue.delete_message(first)
        queue.delete_message(second)
        with refused(404, "MessageNotFound"):
            queue.delete_message(second)

    def test_update(self, queue, refused):
        queue.send_message("old")
        message = queue.receive_message()
        updated = queue.update_message(message, visibility_timeout=0, content="new")
        again = queue.receive_message()
        assert (again.content, again.dequeue_count, again.id) == ("new", 2, message.id)
        with refused(404, "MessageNotFound"):
            queue.update_message(updated, visibility_timeout=0)
        kept = queue.update_message(again.id, again.pop_receipt, visibility_timeout=5)
        assert kept.next_visible_on > datetime.now(timezone.utc)
        assert queue.receive_message() is None

    def test_times(self, queue, refused):
        queue.send_message("hidden", visibility_timeout=1)
        queue.send_message("short", time_to_live=1)
        queue.send_message("for ever", time_to_live=-1)
        queue.send_message("long", time_to_live=1024 * 1024 * 1024)
        assert sorted(texts(queue.peek_messages(32))) == ["for ever", "long", "short"]
        time.sleep(1.2)
        found = {message.content: message for message in queue.peek_messages(32)}
        assert set(found) == {"for ever", "long", "hidden"}
        assert found["for ever"].expires_on.year == 9999
        with refused(400, "InvalidQueryParameterValue"):
            queue.send_message("x", visibility_timeout=30, time_to_live=30)
        for timeout in (-1, 7 * 24 * 3600 + 1):
            with refused(400, "OutOfRangeQueryParameterValue"):
                queue.send_message("x", visibility_timeout=timeout)

    @pytest.mark.parametrize(
        "text",
        ["", " ", " both ends\n", "<xml attribute=\"1\">&amp;</xml>", "a\r\nb\rc\nd", "啊齄丂狛狜 🦄 \U0010ffff", "]]>", "'\""],
    )
    def test_texts_come_back_as_they_were(self, queue, text):
        queue.send_message(text)
        assert queue.receive_message().content == text

    def test_binary_messages(self, queues, queue):
        policies = {"message_encode_policy": BinaryBase64EncodePolicy(), "message_decode_policy": BinaryBase64DecodePolicy()}
        binary = queues.get_queue_client(queue.queue_name, **policies)
        binary.send_message(bytes(range(256)))
        assert binary.receive_message().content == bytes(range(256))

    def test_64_kib_and_no_more(self, queue, refused):
        for text in ("a" * 64 * 1024, "&" * 26_000):
            queue.send_message(text)
            assert queue.receive_message().content == text
        # The body is bounded, too, to 131,584 bytes: a text of escapes has to be shorter.
        for text in ("a" * (64 * 1024 + 1), "&" * 64 * 1024):
            with refused(413, "RequestBodyTooLarge"):
                queue.send_message(text)

    def test_clear(self, queue, refused):
        sent = [queue.send_message(str(number)) for number in range(40)]
        taken = queue.receive_message(visibility_timeout=1)
        queue.clear_messages()
        assert queue.get_queue_properties().approximate_message_count == 0
        assert queue.peek_messages(32) == []
        for message in (sent[-1], taken):
            with refused(404, "MessageNotFound"):
                queue.delete_message(message)

    def test_a_missing_queue(self, queues, refused):
        missing = queues.get_queue_client(new_name())
        for call in (lambda: missing.send_message("x"), missing.peek_messages, missing.receive_message,
                     missing.clear_messages, missing.get_queue_properties, missing.get_queue_access_policy):
            with refused(404, "QueueNotFound"):
                call()

    def test_consumers_share_the_work(self, queue):
        for number in range(200):
            queue.send_message(str(number))

        def consume(_):
            mine = []
            while batch := list(queue.receive_messages(messages_per_page=8, max_messages=8, visibility_timeout=60)):
                mine += [message.content for message in batch]
                for message in batch:
                    queue.delete_message(message)
            return mine

        with ThreadPoolExecutor(8) as pool:
            worked_off = [text for mine in pool.map(consume, range(8)) for text in mine]
        assert sorted(worked_off, key=int) == [str(number) for number in range(200)]


class TestSignatures:
    OPERATIONS = {
        "peek": ("read", lambda client, _: client.peek_messages()),
        "metadata": ("read", lambda client, _: client.get_queue_properties()),
        "put": ("add", lambda client, _: client.send_message("new")),
        "get": ("process", lambda client, _: client.receive_message()),
        "delete": ("process", lambda client, message: client.delete_message(message)),
        "update": ("update", lambda client, message: client.update_message(message, visibility_timeout=0)),
    }

    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize("permission", ["read", "add", "update", "process"])
    def test_a_queue_sas_opens_what_it_says(self, server, queue, refused, operation, permission):
        needed, call = self.OPERATIONS[operation]
        message = queue.send_message("x")
        sas = generate_queue_sas(
            ACCOUNT, queue.queue_name, KEY, QueueSasPermissions(**{permission: True}), in_minutes(10)
        )
        client = QueueClient(server.queue_endpoint(), queue.queue_name, credential=sas, retry_total=0)
        if permission == needed:
            call(client, message)
        else:
            with refused(403, "AuthorizationPermissionMismatch"):
                call(client, message)

    def test_a_queue_sas_is_for_one_queue_and_not_for_queues(self, server, queue, refused):
        everything = QueueSasPermissions(read=True, add=True, update=True, process=True)
        sas = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, everything, in_minutes(10))
        other = QueueClient(server.queue_endpoint(), new_name(), credential=sas, retry_total=0)
        with refused(403, "AuthenticationFailed"):
            other.peek_messages()
        own = QueueClient(server.queue_endpoint(), queue.queue_name, credential=sas, retry_total=0)
        for call in (own.clear_messages, own.delete_queue, own.get_queue_access_policy):
            with refused(403, "AuthorizationFailure"):
                call()

    def test_an_account_sas(self, server, queue, refused):
        def service(types, permissions):
            sas = generate_account_sas(ACCOUNT, KEY, types, permissions, in_minutes(10))
            return QueueServiceClient(server.queue_endpoint(), credential=sas, retry_total=0)

        lister = service(ResourceTypes(service=True), AccountSasPermissions(list=True))
        assert queue.queue_name in [found.name for found in lister.list_queues()]
        with refused(403, "AuthorizationResourceTypeMismatch"):
            lister.get_queue_client(queue.queue_name).peek_messages()
        peeker = service(ResourceTypes(object=True), AccountSasPermissions(read=True))
        assert peeker.get_queue_client(queue.queue_name).peek_messages() == []
        with refused(403, "AuthorizationPermissionMismatch"):
            peeker.get_queue_client(queue.queue_name).send_message("x")

    def test_wrong_keys(self, server, queue, refused):
        wrong = QueueServiceClient(server.queue_endpoint(), credential="bm90IHRoZSBrZXk=", retry_total=0)
        with refused(403, "AuthenticationFailed"):
            list(wrong.list_queues())


def test_messages_survive_a_kill(own_server):
    with QueueServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        queue = service.create_queue(new_name())
        for number in range(50):
            queue.send_message(str(number))
        taken = queue.receive_message(visibility_timeout=3600)
        queue.delete_message(queue.receive_message())
        name = queue.queue_name
    own_server.kill()
    own_server.start()
    with QueueServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        queue = service.get_queue_client(name)
        assert queue.get_queue_properties().approximate_message_count == 49
        left = list(queue.receive_messages(messages_per_page=32))
        assert texts(left) == [str(number) for number in range(2, 50)]
        queue.delete_message(taken)
        with pytest.raises(HttpResponseError):
            queue.delete_message(taken)

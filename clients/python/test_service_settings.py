"""Properties and statistics of the service."""

import pytest
from azure.data.tables import (
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
)


def test_settings_go_and_come_back(own_server):
    with TableServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        retention = TableRetentionPolicy(enabled=True, days=5)
        service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention),
            hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=retention),
            minute_metrics=TableMetrics(enabled=False),
            cors=[
                TableCorsRule(["https://a.example", "https://b.example"], ["GET", "PUT"], max_age_in_seconds=60),
                TableCorsRule(["*"], ["GET"], allowed_headers=["x-ms-*"], exposed_headers=["x-ms-*"], max_age_in_seconds=5),
            ],
        )
        found = service.get_service_properties()
        assert (found["analytics_logging"].read, found["analytics_logging"].retention_policy.days) == (True, 5)
        assert (found["hour_metrics"].enabled, found["hour_metrics"].include_apis) == (True, True)
        assert found["minute_metrics"].enabled is False
        first, second = found["cors"]
        assert first.allowed_origins == ["https://a.example", "https://b.example"]
        assert (first.allowed_methods, first.max_age_in_seconds) == (["GET", "PUT"], 60)
        assert second.allowed_headers == ["x-ms-*"]

        # What is left out keeps its setting.
        service.set_service_properties(minute_metrics=TableMetrics(enabled=True, include_apis=False))
        found = service.get_service_properties()
        assert (found["hour_metrics"].enabled, found["minute_metrics"].enabled) == (True, True)
        assert len(found["cors"]) == 2

    own_server.kill()
    own_server.start()
    with TableServiceClient.from_connection_string(own_server.connection_string()) as service:
        assert len(service.get_service_properties()["cors"]) == 2


def test_six_rules_are_too_many(service, refused):
    rules = [TableCorsRule([f"https://{number}.example"], ["GET"]) for number in range(6)]
    with pytest.raises(Exception) as caught:
        service.set_service_properties(cors=rules)
    assert caught.value.status_code == 400


@pytest.mark.parametrize("body", ["nonsense", "<StorageServiceProperties>", ""])
def test_bodies_that_make_no_sense(wire, body):
    target = "/?restype=service&comp=properties"
    answer = wire.send("PUT", target, body, headers={"Content-Type": "application/xml"})
    assert answer.error() == (400, "InvalidXmlDocument")


def test_statistics(service):
    found = service.get_service_stats()
    assert found["geo_replication"]["status"] in ("live", "bootstrap", "unavailable")

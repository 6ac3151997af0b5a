//! List, create and delete queues; get and set their metadata.

use super::errors::from_queue;
use super::metadata::read_metadata;
use super::parameters::number;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::ApiRequest;
use crate::reply::Reply;
use crate::reply::continuation::{decode_token, encode_token};
use crate::request::query_string::QueryParameters;
use crate::simulate::ListedPage;
use crate::xml::{XML_DECLARATION, put_xml_attribute, put_xml_element, put_xml_tag};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use queue::limits::PAGE_QUEUES_MAX;
use queue::{CreatedQueue, QueueListPage, QueueListQuery, QueueService};

const X_MS_APPROXIMATE_MESSAGES_COUNT: HeaderName =
    HeaderName::from_static("x-ms-approximate-messages-count");

/// Lists queues.
pub(crate) async fn list(service: &QueueService, request: &ApiRequest<'_>) -> Result<Reply, ApiError> {
    let query = request.query;
    let marker = query.find("marker").filter(|marker| !marker.is_empty());
    let results_max = results_max(query)?;
    let list = QueueListQuery {
        prefix: query.find("prefix").unwrap_or_default().to_owned(),
        start: marker.map(decode_token).transpose().map_err(|_| ApiError::new(ErrorCode::InvalidMarker))?,
        count_max: request
            .environment
            .simulated
            .map_or(results_max, |simulated| simulated.list_page(results_max)),
    };
    let with_metadata = !request.includes(&["metadata"])?.is_empty();
    let page = service.list_queues(request.account, &list).await.map_err(from_queue)?;
    let asked = [
        ("Prefix", query.find("prefix").map(str::to_owned)),
        ("Marker", query.find("marker").map(str::to_owned)),
        // What was made of it, as in lists of blobs.
        ("MaxResults", query.find("maxresults").map(|_| results_max.to_string())),
    ];
    let mut reply =
        Reply::xml(StatusCode::OK, write_list(&request.base_address(), asked, &page, with_metadata));
    if let Some(simulated) = request.environment.simulated {
        let (count, has_next) = (page.queues.len(), page.next.is_some());
        let listed = ListedPage { requested_max: results_max, count_max: list.count_max, count, has_next };
        simulated.note_list_end(&mut reply, listed);
    }
    Ok(reply)
}

/// Queues of a page: the requested count, but no more than there may be.
fn results_max(query: &QueryParameters<'_>) -> Result<usize, ApiError> {
    const NAME: &str = "maxresults";
    match number(query, NAME)? {
        None => Ok(PAGE_QUEUES_MAX),
        Some(count) if count >= 1 => Ok(usize::try_from(count).unwrap_or(usize::MAX).min(PAGE_QUEUES_MAX)),
        Some(count) => {
            Err(ApiError::out_of_range_parameter(NAME, &count.to_string(), &(1..=i64::from(i32::MAX))))
        }
    }
}

fn write_list(
    base: &str,
    asked: [(&str, Option<String>); 3],
    page: &QueueListPage,
    with_metadata: bool,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + page.queues.len() * 96);
    out.extend_from_slice(XML_DECLARATION);
    out.extend_from_slice(b"<EnumerationResults ");
    put_xml_attribute(&mut out, "ServiceEndpoint", &format!("{base}/"));
    out.push(b'>');
    for (element, value) in asked {
        if let Some(value) = value {
            put_xml_element(&mut out, element, &value);
        }
    }
    put_xml_tag(&mut out, "<", "Queues");
    for queue in &page.queues {
        put_xml_tag(&mut out, "<", "Queue");
        put_xml_element(&mut out, "Name", &queue.name);
        if with_metadata {
            put_xml_tag(&mut out, "<", "Metadata");
            for (name, value) in &queue.metadata {
                put_xml_element(&mut out, name, value);
            }
            put_xml_tag(&mut out, "</", "Metadata");
        }
        put_xml_tag(&mut out, "</", "Queue");
    }
    put_xml_tag(&mut out, "</", "Queues");
    put_xml_element(&mut out, "NextMarker", &page.next.as_deref().map(encode_token).unwrap_or_default());
    put_xml_tag(&mut out, "</", "EnumerationResults");
    out
}

/// Creates a queue.
pub(crate) async fn create(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    let metadata = read_metadata(request.parts)?;
    match service.create_queue(request.account, queue, metadata).await.map_err(from_queue)? {
        CreatedQueue::New => Ok(Reply::new(StatusCode::CREATED)),
        CreatedQueue::AlreadyThere => Ok(Reply::new(StatusCode::NO_CONTENT)),
    }
}

/// Deletes a queue.
pub(crate) async fn delete(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    service.delete_queue(request.account, queue).await.map_err(from_queue)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

/// Gets a queue's metadata and its number of messages.
pub(crate) async fn read_metadata_of(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    let properties = service.queue_properties(request.account, queue).await.map_err(from_queue)?;
    let mut reply = Reply::new(StatusCode::OK);
    reply.header(X_MS_APPROXIMATE_MESSAGES_COUNT, HeaderValue::from(properties.message_count));
    reply.metadata(&properties.metadata);
    Ok(reply)
}

/// Replaces a queue's metadata.
pub(crate) async fn write_metadata(
    service: &QueueService,
    request: &ApiRequest<'_>,
    queue: &str,
) -> Result<Reply, ApiError> {
    let metadata = read_metadata(request.parts)?;
    service.set_queue_metadata(request.account, queue, metadata).await.map_err(from_queue)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

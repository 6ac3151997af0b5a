//! The yardstick of `bench`: hyper with nothing behind it. A POST's body is read to its end and answered with
//! 204; a GET is answered with as many bytes as the real server's point get.
//!
//! It runs as its own process, on the runtime that hyper servers usually have: tokio with a thread for each
//! core.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct BareServerArguments {
    /// Size of the body of every answer to a GET.
    #[arg(long)]
    get_size_bytes: usize,
    /// Where to write the address once it listens.
    #[arg(long)]
    ready_file: PathBuf,
}

pub(crate) fn run(arguments: &BareServerArguments) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: &BareServerArguments) -> Outcome<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let ready = serde_json::json!({
        "table": format!("http://{}", listener.local_addr()?),
        "pid": std::process::id(),
    });
    std::fs::write(&arguments.ready_file, ready.to_string())?;
    let get_body = Bytes::from(vec![b'x'; arguments.get_size_bytes]);
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let get_body = get_body.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, get_body.clone()));
            // A connection that ends with an error is the client's: there is nothing to do about it here.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service)
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>, get_body: Bytes) -> Result<Response<Full<Bytes>>, hyper::Error> {
    if request.method() == Method::GET {
        let mut response = Response::new(Full::new(get_body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        return Ok(response);
    }
    request.into_body().collect().await?;
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

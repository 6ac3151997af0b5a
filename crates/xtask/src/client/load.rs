//! The load generator: one thread, one `epoll`, many connections, one request under way on each.
//!
//! It must cost much less than the server it measures, so requests come ready-made from [`RequestSource`],
//! and of a response it reads the status line and `Content-Length` and skips the rest. Every status is
//! checked.

use crate::Outcome;
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const RESPONSE_SIZE_BYTES_MAX: usize = 4 * 1024 * 1024;
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// In which the kernel tells programs times (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes ready-made requests.
pub(crate) trait RequestSource {
    /// Appends the next whole request of a connection. `response` is the last one there; at first it is
    /// empty.
    fn write_next(&mut self, connection: usize, response: &[u8], out: &mut Vec<u8>);

    /// The status that answers the request under way on a connection, if it is not the load's.
    fn expected_status(&self, _connection: usize) -> Option<u16> {
        None
    }
}

/// What to measure.
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) connection_count: usize,
    /// Requests of this first span are sent but not counted.
    pub(crate) warm_up_for: Duration,
    pub(crate) measure_for: Duration,
    pub(crate) expected_status: u16,
    /// The server's process, if the time that it takes of the processors is wanted.
    pub(crate) server_process_id: Option<u32>,
}

/// What was measured.
pub(crate) struct Measurement {
    pub(crate) operations_per_second: f64,
    pub(crate) latency_ns: Histogram<u64>,
    /// What an operation takes of the processors in the server's process; without one, nothing.
    pub(crate) server_time_per_operation: Option<Duration>,
    /// The generator's own share of one core: near 1 it would be the bottleneck.
    pub(crate) generator_share: f64,
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    sent_bytes: usize,
    sent_at: Instant,
    response: Vec<u8>,
}

/// Sends requests until the time is over, and waits for the last answers: each request sent was answered as
/// expected.
pub(crate) fn measure(load: &Load, source: &mut dyn RequestSource) -> Outcome<Measurement> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for index in 0..load.connection_count {
        let stream = std::net::TcpStream::connect(load.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        connections.push(Connection {
            stream,
            request: Vec::new(),
            sent_bytes: 0,
            sent_at: Instant::now(),
            response: Vec::new(),
        });
    }

    let mut latency_ns = Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3)?;
    let counting_from = Instant::now() + load.warm_up_for;
    let counting_until = counting_from + load.measure_for;
    let mut processor_times_at_start = None;
    let server_time = || load.server_process_id.map(processor_time_of).transpose();
    let mut scratch = vec![0; 64 * 1024];
    for (index, connection) in connections.iter_mut().enumerate() {
        connection.send_next(index, source, Instant::now())?;
    }
    let mut events = Events::with_capacity(load.connection_count);
    let mut waiting_count = connections.len();
    while waiting_count > 0 {
        poll.poll(&mut events, Some(STALL_TIMEOUT))?;
        if events.is_empty() {
            return Err(format!("the server answered nothing for {STALL_TIMEOUT:?}").into());
        }
        if processor_times_at_start.is_none() && Instant::now() >= counting_from {
            processor_times_at_start = Some((processor_time()?, server_time()?));
        }
        for event in &events {
            let index = event.token().0;
            let connection = &mut connections[index];
            let expected_status = source.expected_status(index).unwrap_or(load.expected_status);
            if event.is_writable() {
                connection.flush()?;
            }
            if event.is_readable() && connection.receive(&mut scratch, expected_status)? {
                let now = Instant::now();
                if now >= counting_from && now < counting_until {
                    let waited_for = now.duration_since(connection.sent_at).as_nanos() as u64;
                    latency_ns.record(waited_for.clamp(1_000, LATENCY_NS_MAX))?;
                }
                if now < counting_until {
                    connection.send_next(index, source, now)?;
                } else {
                    waiting_count -= 1;
                }
            }
        }
    }
    let (generator_at_start, server_at_start) =
        processor_times_at_start.ok_or("nothing was answered in time")?;
    let processor_time_used = processor_time()? - generator_at_start;
    let server_time_used = server_time()?.zip(server_at_start).map(|(end, start)| end.saturating_sub(start));
    let measured_for = load.measure_for.as_secs_f64();
    Ok(Measurement {
        operations_per_second: latency_ns.len() as f64 / measured_for,
        server_time_per_operation: server_time_used.map(|used| used.div_f64(latency_ns.len().max(1) as f64)),
        latency_ns,
        generator_share: processor_time_used.as_secs_f64() / measured_for,
    })
}

impl Connection {
    fn send_next(&mut self, index: usize, source: &mut dyn RequestSource, now: Instant) -> Outcome<()> {
        self.request.clear();
        self.sent_bytes = 0;
        source.write_next(index, &self.response, &mut self.request);
        self.response.clear();
        self.sent_at = now;
        self.flush()
    }

    fn flush(&mut self) -> Outcome<()> {
        while self.sent_bytes < self.request.len() {
            match self.stream.write(&self.request[self.sent_bytes..]) {
                Ok(sent_bytes) => self.sent_bytes += sent_bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is there; true when the response is whole. The server sends nothing after it until the next
    /// request, so a read that ends a response need not be followed by one that would block.
    fn receive(&mut self, scratch: &mut [u8], expected_status: u16) -> Outcome<bool> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(size) => self.response.extend_from_slice(&scratch[..size]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let Some((status, total_size)) = parse_head(&self.response)? else {
                continue;
            };
            if self.response.len() < total_size {
                continue;
            }
            if status != expected_status || self.response.len() > total_size {
                let text = String::from_utf8_lossy(&self.response).into_owned();
                return Err(
                    format!("expected one response with status {expected_status}, got:\n{text}").into()
                );
            }
            return Ok(true);
        }
    }
}

/// Status and whole size of a response, once its head is there.
fn parse_head(response: &[u8]) -> Outcome<Option<(u16, usize)>> {
    let Some(head_end) = memchr::memmem::find(response, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = &response[..head_end];
    let broken = || format!("not a response head: {:?}", String::from_utf8_lossy(head));
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(broken)?;
    let status = status.parse::<u16>().map_err(|_| broken())?;
    let mut body_size = (status == 204).then_some(0);
    for line in head.split(|&byte| byte == b'\n') {
        const NAME: &[u8] = b"content-length:";
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let value = std::str::from_utf8(&line[NAME.len()..])?.trim();
            body_size = Some(value.parse::<usize>()?);
        }
    }
    let body_size = body_size.ok_or_else(broken)?;
    if body_size > RESPONSE_SIZE_BYTES_MAX {
        return Err(format!("a response of {body_size} bytes").into());
    }
    Ok(Some((status, head_end + 4 + body_size)))
}

/// How long this thread has been on a processor.
fn processor_time() -> Outcome<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = statistics.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// How long all threads of a process have been on a processor.
pub(crate) fn processor_time_of(process_id: u32) -> Outcome<Duration> {
    let statistics = std::fs::read_to_string(format!("/proc/{process_id}/stat"))?;
    // The name before it may hold anything; user and system time are the 12th and 13th field after it.
    let (_, fields) = statistics.rsplit_once(')').ok_or("stat of a process without its name")?;
    let mut ticks: u32 = 0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<u32>()?;
    }
    Ok(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::parse_head;

    #[test]
    fn reads_status_and_size() {
        assert_eq!(parse_head(b"HTTP/1.1 204 No Content\r\n").unwrap(), None);
        assert_eq!(parse_head(b"HTTP/1.1 204 No Content\r\netag: x\r\n\r\n").unwrap(), Some((204, 36)));
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(parse_head(response).unwrap(), Some((200, response.len())));
    }

    #[test]
    fn refuses_a_body_of_unknown_size() {
        assert!(parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse_head(b"nonsense\r\n\r\n").is_err());
    }
}

//! A TCP proxy between two parties that can cut them off from each other, both ways, with every connection
//! left open: as if packets were dropped on the way. Healed, what was sent meanwhile arrives, as TCP repeats
//! it.
//!
//! What always holds: while it is cut, no byte passes, and new connections get no answer; bytes are never
//! lost, repeated or out of order.

use crate::Outcome;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes that pass at a time.
const PART_SIZE_BYTES: usize = 64 << 10;
/// How often a thread looks whether the proxy ends.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const ACCEPT_INTERVAL: Duration = Duration::from_millis(5);

/// What a proxy lets through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Cut,
    Ended,
}

struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    passed_bytes: AtomicU64,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// Waits until it is open; false: the proxy ends.
    fn pass(&self) -> bool {
        let mut state = self.lock();
        while *state == State::Cut {
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *state == State::Open
    }

    fn has_ended(&self) -> bool {
        *self.lock() == State::Ended
    }
}

/// A proxy that runs until its value goes.
pub(super) struct Proxy {
    /// Where it listens.
    pub(super) address: SocketAddr,
    gate: Arc<Gate>,
}

impl Proxy {
    /// Listens on a free port, and connects each that comes to the other side.
    pub(super) fn start(other_side: SocketAddr) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let gate = Arc::new(Gate {
            state: Mutex::new(State::Open),
            changed: Condvar::new(),
            passed_bytes: AtomicU64::new(0),
        });
        let for_thread = gate.clone();
        std::thread::spawn(move || accept(&listener, other_side, &for_thread));
        Ok(Proxy { address, gate })
    }

    /// Bytes that have passed, both ways.
    pub(super) fn passed_bytes(&self) -> u64 {
        self.gate.passed_bytes.load(Ordering::Relaxed)
    }

    /// From now on nothing passes.
    pub(super) fn cut(&self) {
        self.gate.set(State::Cut);
    }

    /// All passes again.
    pub(super) fn heal(&self) {
        self.gate.set(State::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gate.set(State::Ended);
    }
}

fn accept(listener: &TcpListener, other_side: SocketAddr, gate: &Arc<Gate>) {
    while !gate.has_ended() {
        match listener.accept() {
            Ok((near, _)) => {
                let gate = gate.clone();
                std::thread::spawn(move || {
                    // What fails here is for the two sides to see: their connection closes.
                    let _ = join(near, other_side, &gate);
                });
            }
            Err(_) => std::thread::sleep(ACCEPT_INTERVAL),
        }
    }
}

/// Two threads for a connection: this one for one way, another for the other.
fn join(near: TcpStream, other_side: SocketAddr, gate: &Arc<Gate>) -> std::io::Result<()> {
    near.set_nonblocking(false)?;
    if !gate.pass() {
        return Ok(());
    }
    let far = TcpStream::connect(other_side)?;
    for side in [&near, &far] {
        side.set_nodelay(true)?;
        side.set_read_timeout(Some(LOOK_INTERVAL))?;
    }
    let (near_too, far_too, gate_too) = (near.try_clone()?, far.try_clone()?, gate.clone());
    let answers = std::thread::spawn(move || pump(far_too, near_too, &gate_too));
    pump(near, far, gate);
    let _ = answers.join();
    Ok(())
}

/// Passes bytes one way until that way ends.
fn pump(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut part = vec![0; PART_SIZE_BYTES];
    while gate.pass() {
        let size = match from.read(&mut part) {
            Ok(size) => size,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        // It may have been cut while this waited: an end of a connection does not pass either.
        if !gate.pass() || size == 0 || to.write_all(&part[..size]).is_err() {
            break;
        }
        gate.passed_bytes.fetch_add(size as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends back what comes.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { return };
                std::thread::spawn(move || {
                    let mut back = connection.try_clone().expect("a handle");
                    let _ = std::io::copy(&mut connection, &mut back);
                });
            }
        });
        address
    }

    #[test]
    fn a_cut_holds_both_ways_and_loses_nothing_once_healed() {
        let proxy = Proxy::start(echo()).expect("it listens");
        let mut client = TcpStream::connect(proxy.address).expect("it connects");
        client.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        let mut answer = [0; 3];
        client.write_all(b"one").expect("it is sent");
        client.read_exact(&mut answer).expect("it is answered");
        assert_eq!(&answer, b"one");

        proxy.cut();
        client.write_all(b"two").expect("the kernel takes it");
        assert!(client.read_exact(&mut answer).is_err(), "nothing passes a cut");
        let mut late = TcpStream::connect(proxy.address).expect("the kernel takes it");
        late.set_read_timeout(Some(Duration::from_millis(200))).expect("a time-out");
        late.write_all(b"new").expect("the kernel takes it");
        assert!(late.read_exact(&mut answer).is_err(), "no new connection is served");

        proxy.heal();
        client.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        client.read_exact(&mut answer).expect("it arrives late");
        assert_eq!(&answer, b"two");
        late.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        late.read_exact(&mut answer).expect("it arrives late");
        assert_eq!(&answer, b"new");
    }

    #[test]
    fn an_end_passes_and_the_proxy_ends_with_its_value() {
        let proxy = Proxy::start(echo()).expect("it listens");
        let mut client = TcpStream::connect(proxy.address).expect("it connects");
        client.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        client.write_all(b"end").expect("it is sent");
        client.shutdown(Shutdown::Write).expect("it ends");
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("the other side ends, too");
        assert_eq!(all, b"end");
        assert_eq!(proxy.passed_bytes(), 6, "both ways");
        let mut open = TcpStream::connect(proxy.address).expect("it connects");
        open.write_all(b"x").expect("it is sent");
        let mut one = [0];
        open.read_exact(&mut one).expect("it is joined");
        drop(proxy);
        open.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        assert!(matches!(open.read(&mut one), Ok(0) | Err(_)), "its connections close");
    }
}

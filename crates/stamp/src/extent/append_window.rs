//! Appends to one extent that are under way side by side: pure bookkeeping for its writer.
//!
//! The writer pushes a part, sends it, and reports each answer; parts that have become durable come out in
//! order. One append that ends otherwise stops the window for good: what is pending fails, the extent is
//! sealed at the end that is found, and the stream goes on in a new one.
//!
//! What always holds: an offset is given out once, so that there are never two different parts for one name;
//! a part is acknowledged only behind all parts before it; nothing is acknowledged after a stop or without a
//! lease; at most [`WindowBounds`] is under way.

use crate::extent::chain::Chain;
use crate::extent::choose_after_append::{AfterAppend, AppendStop, Found, choose_after_append};
use crate::extent::part_header::{ExtentPlace, PartHeader, PartKind, StampLife};
use crate::extent::put_answer::PutAnswer;
use crate::extent::seal_body::LISTED_PARTS_MAX;
use crate::ids::Owner;
use std::collections::VecDeque;

/// Parts of one extent that are under way at a time.
pub const WINDOW_PARTS_MAX: usize = 4;
/// Bytes of bodies of one extent that are under way at a time.
pub const WINDOW_SIZE_BYTES_MAX: u64 = WINDOW_PARTS_MAX as u64 * (16 << 20);

/// Parts that an owner gives one extent at most. Whoever takes the range walks over those of each open one,
/// with a read for each: some seconds at most. Fewer than a seal lists.
pub const EXTENT_PARTS_MAX: usize = 4096;
const _: () = assert!(EXTENT_PARTS_MAX <= LISTED_PARTS_MAX);
/// Parts of an extent where the document has few.
const EXTENT_PARTS_MIN: usize = 512;
/// So many more extents let each have as many parts more as the first ones.
const EXTENTS_PER_STEP: usize = 256;

/// Parts that an owner gives an extent if its document has so many. While there are few, a short walk for
/// whoever takes the range is worth the extents that it costs the document; later the document's room is.
pub fn extent_parts_max(extent_count: usize) -> usize {
    (EXTENT_PARTS_MIN * (1 + extent_count / EXTENTS_PER_STEP)).min(EXTENT_PARTS_MAX)
}

/// How much may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowBounds {
    /// Parts, at least 1.
    pub parts_max: usize,
    /// Bytes of bodies. One part is always let in.
    pub size_bytes_max: u64,
}

impl Default for WindowBounds {
    fn default() -> Self {
        WindowBounds { parts_max: WINDOW_PARTS_MAX, size_bytes_max: WINDOW_SIZE_BYTES_MAX }
    }
}

/// Why a part was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushRefused {
    /// Wait until one has been acknowledged.
    Full,
    /// The extent takes no more.
    Stopped(AppendStop),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum PartState {
    Sent,
    Durable,
    /// The store refused for certain.
    Failed,
}

/// A part that was sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct InFlight {
    header: PartHeader,
    state: PartState,
    /// A try of it was answered so that it may yet be there.
    was_unknown: bool,
}

/// The appends to one extent by its writer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendWindow {
    life: StampLife,
    place: ExtentPlace,
    writer: Owner,
    bounds: WindowBounds,
    /// Where the next part goes, and the header before it.
    next_offset: u64,
    next_previous: u64,
    /// The end of what is acknowledged, and the header before it.
    end: u64,
    previous: u64,
    /// Lengths of the bodies that are acknowledged, which the seal lists; one more than that at most.
    acknowledged_lengths: Vec<u64>,
    in_flight: VecDeque<InFlight>,
    stop: Option<AppendStop>,
}

impl AppendWindow {
    /// A window over an extent without parts.
    ///
    /// Its first part may be sent only when the extent before it in its stream is known to be sealed: see
    /// `choose_first_part`.
    pub fn new(life: StampLife, place: ExtentPlace, writer: Owner, bounds: WindowBounds) -> Self {
        AppendWindow {
            life,
            place,
            writer,
            bounds,
            next_offset: 0,
            next_previous: 0,
            end: 0,
            previous: 0,
            acknowledged_lengths: Vec::new(),
            in_flight: VecDeque::new(),
            stop: None,
        }
    }

    /// Whether a part of this length would be let in now.
    pub fn has_room(&self, body_length: u64) -> bool {
        let under_way: u64 = self.in_flight.iter().map(|sent| sent.header.body_length).sum();
        let is_full = self.in_flight.len() >= self.bounds.parts_max.max(1)
            || under_way.saturating_add(body_length) > self.bounds.size_bytes_max;
        !is_full || self.in_flight.is_empty()
    }

    /// Parts that the extent has, those under way included.
    pub fn part_count(&self) -> usize {
        self.acknowledged_lengths.len() + self.in_flight.len()
    }

    /// The header of the next part, for a body of this length and checksum. The caller sends it.
    pub fn push(&mut self, body_length: u64, body_checksum: u64) -> Result<PartHeader, PushRefused> {
        if let Some(stop) = &self.stop {
            return Err(PushRefused::Stopped(stop.clone()));
        }
        if !self.has_room(body_length) {
            return Err(PushRefused::Full);
        }
        let header = PartHeader {
            kind: PartKind::Part,
            life: self.life,
            place: self.place,
            offset: self.next_offset,
            body_length,
            writer: self.writer,
            body_checksum,
            previous: self.next_previous,
        };
        self.next_offset = header.end();
        self.next_previous = header.checksum();
        self.in_flight.push_back(InFlight { header, state: PartState::Sent, was_unknown: false });
        Ok(header)
    }

    /// The PUT of the part at `offset` was answered; `found` is what a read of its name has found since then,
    /// if it was read. None if no such part is under way.
    pub fn answered(
        &mut self,
        offset: u64,
        answer: PutAnswer,
        found: Option<&Found>,
        lease_holds: bool,
    ) -> Option<AfterAppend> {
        if let Some(stop) = &self.stop {
            return Some(AfterAppend::Stop(stop.clone()));
        }
        let sent = self.in_flight.iter_mut().find(|sent| sent.header.offset == offset)?;
        if sent.state == PartState::Durable {
            return None;
        }
        sent.was_unknown |= answer == PutAnswer::Unknown;
        let choice = choose_after_append(answer, found, &sent.header, lease_holds);
        match &choice {
            AfterAppend::Acknowledge => sent.state = PartState::Durable,
            AfterAppend::Stop(stop) => {
                if matches!(stop, AppendStop::Failed(_)) {
                    sent.state = PartState::Failed;
                }
                self.stop = Some(stop.clone());
            }
            AfterAppend::ReadHeader | AfterAppend::SendAgain => {}
        }
        Some(choice)
    }

    /// The parts that are to be acknowledged now: durable, behind all before them. Without a lease there are
    /// none, and the window stops if there would have been one.
    pub fn acknowledge(&mut self, lease_holds: bool) -> Vec<PartHeader> {
        let mut acknowledged = Vec::new();
        while self.stop.is_none() && self.is_next_durable() {
            if !lease_holds {
                self.stop = Some(AppendStop::LeaseEnded);
                break;
            }
            let Some(sent) = self.in_flight.pop_front() else { break };
            self.end = sent.header.end();
            self.previous = sent.header.checksum();
            if self.acknowledged_lengths.len() <= LISTED_PARTS_MAX {
                self.acknowledged_lengths.push(sent.header.body_length);
            }
            acknowledged.push(sent.header);
        }
        acknowledged
    }

    /// Nothing more is sent or acknowledged: the caller lost its patience, its lease or its range.
    pub fn stop(&mut self, why: AppendStop) {
        self.stop.get_or_insert(why);
    }

    /// Why the window has stopped, if it has.
    pub fn stopped(&self) -> Option<&AppendStop> {
        self.stop.as_ref()
    }

    fn is_next_durable(&self) -> bool {
        self.in_flight.front().is_some_and(|sent| sent.state == PartState::Durable)
    }

    /// The parts that are not acknowledged, each with whether it may be there: a definite failure of a part
    /// that was never of unknown outcome is certain, all else is not.
    pub fn pending(&self) -> impl Iterator<Item = (&PartHeader, bool)> {
        let may_be_there = |sent: &InFlight| sent.state != PartState::Failed || sent.was_unknown;
        self.in_flight.iter().map(move |sent| (&sent.header, may_be_there(sent)))
    }

    /// Whether nothing is under way.
    pub fn is_drained(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Bytes that are acknowledged: where the seal goes if the window is drained.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Where the next part would go.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// Which extent this is.
    pub fn place(&self) -> ExtentPlace {
        self.place
    }

    /// Who writes it.
    pub fn writer(&self) -> Owner {
        self.writer
    }

    /// Lengths of the bodies that are acknowledged, in order.
    pub fn acknowledged_lengths(&self) -> &[u64] {
        &self.acknowledged_lengths
    }

    /// The chain of what is acknowledged.
    pub(crate) fn chain(&self) -> Chain {
        Chain::at(self.place.extent, self.end, self.previous, self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::fixtures::{life, place, seal, writer};

    fn window(parts_max: usize) -> AppendWindow {
        let bounds = WindowBounds { parts_max, size_bytes_max: 100 };
        AppendWindow::new(life(), place(), writer(1, 1), bounds)
    }

    fn offsets(parts: &[PartHeader]) -> Vec<u64> {
        parts.iter().map(|part| part.offset).collect()
    }

    #[test]
    fn extents_grow_longer_once_a_document_has_many() {
        for (extents, parts) in [(0, 512), (255, 512), (256, 1024), (1791, 3584), (1792, 4096), (5000, 4096)]
        {
            assert_eq!(extent_parts_max(extents), parts, "{extents}");
        }
        let parts: usize = (0..5000).map(extent_parts_max).sum();
        assert!(parts > 5000 * EXTENT_PARTS_MAX / 100 * 80, "a full document names about as much: {parts}");
    }

    #[test]
    fn parts_are_acknowledged_in_order() {
        let mut window = window(3);
        let sent: Vec<PartHeader> = (0..3).map(|body| window.push(10, body).unwrap()).collect();
        assert_eq!(offsets(&sent), [0, 10, 20]);
        assert_eq!(sent[1].previous, sent[0].checksum());
        window.answered(10, PutAnswer::Created, None, true);
        window.answered(20, PutAnswer::Created, None, true);
        assert_eq!(window.acknowledge(true), [], "what lies behind a hole is not acknowledged");
        assert_eq!(window.answered(0, PutAnswer::Unknown, None, true), Some(AfterAppend::SendAgain));
        window.answered(0, PutAnswer::Refused, Some(&Found::Header(sent[0])), true);
        assert_eq!(window.acknowledge(true), sent);
        assert!(window.is_drained());
        assert_eq!(window.end(), 30);
    }

    #[test]
    fn as_much_is_under_way_as_is_bounded() {
        let mut narrow = window(2);
        narrow.push(10, 0).unwrap();
        narrow.push(10, 1).unwrap();
        assert_eq!(narrow.push(10, 2), Err(PushRefused::Full));
        let mut wide = window(9);
        wide.push(500, 0).expect("one is always let in");
        assert_eq!(wide.push(1, 1), Err(PushRefused::Full));
        wide.answered(0, PutAnswer::Created, None, true);
        assert_eq!(wide.acknowledge(true).len(), 1);
        assert_eq!(wide.push(1, 1).unwrap().offset, 500);
    }

    #[test]
    fn a_stop_is_for_good_and_acknowledges_nothing_more() {
        let own_seal = seal(writer(1, 1), 0, 0);
        let other_seal = seal(writer(2, 2), 0, 0);
        for (answer, found, why) in [
            (PutAnswer::Failed { status: 507 }, None, AppendStop::Failed(507)),
            (PutAnswer::Refused, Some(Found::Header(other_seal)), AppendStop::SealedOut),
            (PutAnswer::Refused, Some(Found::Header(own_seal)), AppendStop::Closed),
            (PutAnswer::Refused, Some(Found::NotThere), AppendStop::Deleted),
        ] {
            let mut window = window(3);
            window.push(10, 0).unwrap();
            window.push(10, 1).unwrap();
            let stop = AfterAppend::Stop(why.clone());
            assert_eq!(window.answered(0, answer, found.as_ref(), true), Some(stop.clone()));
            assert_eq!(window.answered(10, PutAnswer::Created, None, true), Some(stop));
            assert_eq!(window.acknowledge(true), []);
            assert_eq!(window.push(1, 2), Err(PushRefused::Stopped(why)));
            assert_eq!(window.pending().count(), 2);
            assert_eq!((window.end(), window.is_drained()), (0, false));
        }
    }

    #[test]
    fn a_durable_part_waits_and_is_not_acknowledged_after_the_lease() {
        let mut window = window(2);
        window.push(10, 0).unwrap();
        window.push(10, 1).unwrap();
        window.answered(10, PutAnswer::Created, None, true);
        window.answered(0, PutAnswer::Created, None, true);
        assert_eq!(window.acknowledge(false), []);
        assert_eq!(window.stopped(), Some(&AppendStop::LeaseEnded));
        assert_eq!(window.acknowledge(true), [], "a lease that ended does not come back");
    }

    #[test]
    fn only_what_is_certain_is_reported_as_not_there() {
        let failed = PutAnswer::Failed { status: 400 };
        let mut known = window(2);
        known.push(10, 0).unwrap();
        known.push(10, 1).unwrap();
        known.answered(0, failed, None, true);
        assert_eq!(known.pending().map(|(_, may_be)| may_be).collect::<Vec<_>>(), [false, true]);
        let mut unknown = window(2);
        unknown.push(10, 0).unwrap();
        unknown.answered(0, PutAnswer::Unknown, None, true);
        unknown.answered(0, failed, None, true);
        assert_eq!(unknown.pending().map(|(_, may_be)| may_be).collect::<Vec<_>>(), [true]);
        let mut given_up = window(2);
        given_up.push(10, 0).unwrap();
        given_up.stop(AppendStop::GivenUp);
        assert_eq!(given_up.pending().map(|(_, may_be)| may_be).collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn answers_for_what_is_not_under_way_are_none() {
        let mut window = window(2);
        assert_eq!(window.answered(0, PutAnswer::Created, None, true), None);
        window.push(10, 0).unwrap();
        window.answered(0, PutAnswer::Created, None, true);
        assert_eq!(window.answered(0, PutAnswer::Refused, None, true), None, "it is durable already");
    }
}

//! What is remembered of a session that has finished: its row, its final form in little room, and
//! the ends of its streams for pages.

use serde::Serialize;

use super::Report;
use super::kept::{ends_at, furthest, holds};
use super::output::{Stream, capped};
use crate::limits::STREAM_TAIL_BYTES;
use crate::pure::buffer::arrival::Arrival;
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::interleave::Interleaving;
use crate::server::engine::pages::{KeptBytes, PageSource, PageSpec};
use crate::server::session::SessionId;
use crate::server::session::drain::Came;
use crate::server::session::listening::Listening;
use crate::server::session::output::Source;
use crate::server::session::state_report::StateReportCamel;

/// Characters that are left of each text of a finished session whose texts are cut.
const SHRUNK_JOB_CHARS: usize = 2_000;

/// What is remembered of one finished session (architecture.md, Bounds), unless its texts alone
/// take more: later polls must give these again.
const FINISHED_JOB_BYTES: usize = 64 * 1024;

/// About what the texts of a row take besides its command and directory.
const ROW_TEXTS_BYTES: usize = 256;

/// One row of list_processes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct Row {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub command: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    pub started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    pub duration_ms: u64,
    pub output_bytes: u64,
    #[serde(flatten)]
    pub doing: Option<StateReportCamel>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<Listening>,
    pub stdin_mode: &'static str,
    pub stdin_open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip)]
    pub(super) ended_ns: Option<u64>,
}

/// The text of both streams in order of arrival.
#[derive(Debug)]
enum Whole {
    /// The text is that of this stream, for the other one wrote nothing.
    Same(Source),
    /// The text is made of both.
    Mixed(Interleaving),
}

/// The streams of a session that has finished, for pages of one of them.
#[derive(Debug)]
enum Streams {
    /// Only this one wrote: its pages are those of the whole.
    One(Source),
    /// The ends of both.
    Apart([KeptBytes; 2]),
    /// Both in one, with the order in which they came; and the end of each where that reaches
    /// further back.
    Mixed(Arrival, [KeptBytes; 2]),
}

/// What is remembered of a session that has finished.
#[derive(Debug)]
pub struct Finished {
    pub row: Row,
    /// The session's final form, but for the text of both streams.
    pub report: Report,
    /// The name of the family that started it.
    pub family: &'static str,
    /// The name of its log, where there may be one.
    pub log: Option<String>,
    whole: Whole,
    /// The last bytes of its output, where no log has them.
    kept: Option<KeptBytes>,
    streams: Streams,
    /// What had come when its output was left to others.
    pub left_at: Option<Came>,
    /// The texts were cut to make room for those of other sessions.
    pub shrunk: bool,
}

impl Finished {
    /// `kept`: the last bytes of its output, where no log has them.
    pub fn new(row: Row, mut report: Report, kept: Option<KeptBytes>) -> Self {
        let texts = (report.stdout.as_deref(), report.stderr.as_deref());
        let (out, err) = (texts.0.unwrap_or_default(), texts.1.unwrap_or_default());
        let whole = match report.aggregated.take() {
            Some(whole) if whole != out && whole == err => Whole::Same(Source::Errors),
            Some(whole) if whole != out => Whole::Mixed(Interleaving::new(&whole, out, err)),
            _ => Whole::Same(Source::Output),
        };
        for text in [&mut report.stdout, &mut report.stderr] {
            text.iter_mut().for_each(String::shrink_to_fit);
        }
        let streams = Streams::One(Source::Output);
        let (family, log, left_at, shrunk) = ("stream", None, None, false);
        Self { row, report, family, log, whole, kept, streams, left_at, shrunk }
    }

    /// Cuts its texts to their ends: how it ended is told on, and where its log is.
    pub fn shrink(&mut self) {
        let mut report = self.report();
        let log_path = report.log_path.clone();
        let mut cut = false;
        let texts = [&mut report.stdout, &mut report.stderr, &mut report.aggregated];
        for (text, omitted_chars) in texts.into_iter().zip(&mut report.omitted_chars) {
            let Some(whole) = text.take() else { continue };
            let shown = match whole.split_once('\n').filter(|_| *omitted_chars > 0) {
                Some((_, shown)) => shown.to_owned(),
                None => whole,
            };
            let end = capped(shown, *omitted_chars, SHRUNK_JOB_CHARS, log_path.as_deref());
            cut |= end.omitted_chars > 0;
            (*text, *omitted_chars) = (Some(end.text), end.omitted_chars);
        }
        report.truncated = cut.then_some(true);
        let kept = self.kept.take().map(|(bytes, starts_at)| {
            let dropped = bytes.len().saturating_sub(STREAM_TAIL_BYTES);
            (bytes[dropped..].to_vec(), starts_at + dropped as u64)
        });
        let mut shrunk = Self::new(self.row.clone(), report, kept);
        shrunk.shrunk = true;
        shrunk.family = self.family;
        shrunk.log = self.log.take();
        shrunk.left_at = self.left_at;
        shrunk.streams = match &self.streams {
            Streams::Apart(ends) => {
                let end = |(bytes, starts_at): &KeptBytes| (vec![], starts_at + bytes.len() as u64);
                Streams::Apart([end(&ends[0]), end(&ends[1])])
            }
            Streams::Mixed(order, ends) => {
                let end = |kept: &KeptBytes| (vec![], ends_at(kept));
                Streams::Mixed(order.clone(), [end(&ends[0]), end(&ends[1])])
            }
            Streams::One(only) => Streams::One(*only),
        };
        *self = shrunk;
    }

    /// Remembers the ends of both streams, as far as there is room.
    pub fn keep_apart(&mut self, own: &Stream) {
        let rings = [Source::Output, Source::Errors].map(|source| own.ring(source));
        let both = self.kept.as_ref().map_or(&[][..], |(bytes, _)| bytes);
        self.streams = match rings.map(TailRing::total_bytes) {
            [_, 0] => Streams::One(Source::Output),
            [0, _] => Streams::One(Source::Errors),
            // Without a log there is more of both in one than there is of each.
            _ if self.kept.is_some() => {
                let apart = own.arrival().apart(both);
                let ends = [0, 1].map(|at| {
                    let all = rings[at].last(usize::MAX);
                    if all.0.len() > apart[at].len() { all } else { (vec![], ends_at(&all)) }
                });
                Streams::Mixed(own.arrival().clone(), ends)
            }
            _ => {
                let most = FINISHED_JOB_BYTES.saturating_sub(self.bytes()) / 2;
                Streams::Apart(rings.map(|ring| ring.last(most)))
            }
        };
    }

    /// The session's final form.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        let (out, err) = (report.stdout.as_deref(), report.stderr.as_deref());
        report.aggregated = match &self.whole {
            Whole::Same(Source::Output) => out.map(str::to_owned),
            Whole::Same(Source::Errors) => err.map(str::to_owned),
            Whole::Mixed(order) => {
                Some(order.text(out.unwrap_or_default(), err.unwrap_or_default()))
            }
        };
        report
    }

    /// What memory has of one stream, where both have written.
    pub fn stream(&self, source: Source) -> Option<KeptBytes> {
        match &self.streams {
            Streams::One(_) => None,
            Streams::Apart(ends) => Some(ends[source as usize].clone()),
            Streams::Mixed(order, ends) => {
                let both = self.kept.as_ref().map_or(&[][..], |(bytes, _)| bytes);
                Some(furthest(ends[source as usize].clone(), order, both, source))
            }
        }
    }

    /// Where a page comes from.
    pub fn page(&self, spec: &PageSpec) -> PageSource {
        if let Some((source, kept)) = spec.source.and_then(|one| Some((one, self.stream(one)?))) {
            return match &self.log {
                Some(log) if !holds(&kept, spec) => {
                    PageSource::Log(log.clone(), Some(source), ends_at(&kept))
                }
                _ => PageSource::Memory(kept.0, kept.1),
            };
        }
        match (spec.source, &self.streams) {
            (Some(source), Streams::One(only)) if source != *only => PageSource::Memory(vec![], 0),
            _ => match (&self.kept, &self.log) {
                (Some((bytes, starts_at)), _) => PageSource::Memory(bytes.clone(), *starts_at),
                (None, Some(log)) => PageSource::Log(log.clone(), None, self.row.output_bytes),
                (None, None) => PageSource::Memory(vec![], self.row.output_bytes),
            },
        }
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let texts = [&self.report.stdout, &self.report.stderr].into_iter().flatten();
        let order = match &self.whole {
            Whole::Mixed(order) => order.heap_bytes(),
            Whole::Same(_) => 0,
        };
        let ends = match &self.streams {
            Streams::Apart(ends) => ends.iter().map(|(bytes, _)| bytes.len()).sum(),
            Streams::Mixed(order, [out, err]) => order.heap_bytes() + out.0.len() + err.0.len(),
            Streams::One(_) => 0,
        };
        let kept = self.kept.as_ref().map_or(0, |(bytes, _)| bytes.len());
        // The row's texts stand in the report once more, but for the command.
        let row = self.row.command.len() + 2 * (self.row.cwd.len() + ROW_TEXTS_BYTES);
        texts.map(String::len).sum::<usize>() + order + ends + kept + row
    }
}

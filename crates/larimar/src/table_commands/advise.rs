//! `larimar advise`: the thin end of crate `advise`: a sample, a mix and answers in, a report or key
//! functions out.
//!
//! What always holds: nothing of the table is changed; whatever is wrong with the input is one line and exit
//! code 2; questions are only asked at a terminal, elsewhere their defaults hold and are written down.

use super::settings::{address, format, path, settings, within_connections};
use super::{in_runtime, print, with_environment};
use crate::Failure;
use crate::arguments::advise_arguments::{AdviseArguments, EmitLanguage};
use crate::arguments::table_arguments::ReachArguments;
use ::advise::emit::{Language, emit};
use ::advise::{
    Answers, Mix, QUESTIONS, Report, SAMPLE_ENTITIES_MAX, Sample, SampleEntity, advise, mix_of_access_log,
    parse_mix, report_json, report_text,
};
use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use storage_client::{Entity, Service, Value};
use table::EdmValue;
use table_tools::{Drawn, SamplePlan, SampleSource, TablePlace};

/// Bytes of a mix or of answers, and of an access log, at most.
const MIX_SIZE_BYTES_MAX: u64 = 1 << 20;
const LOG_SIZE_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a sample's JSON, at most: values in memory take a few times as much.
const SAMPLE_SIZE_BYTES_MAX: u64 = 1 << 30;
/// A table's share that is drawn without another one.
const TABLE_SHARE: f64 = 0.01;

/// Does what was asked for.
pub(crate) fn run(of: &AdviseArguments) -> Result<ExitCode, Failure> {
    let mix = read_mix(of)?;
    let plan = sample_plan(of)?;
    let answers = read_answers(of.answers.as_deref())?;
    let drawn = in_runtime(async {
        with_environment(async |environment| table_tools::sample(&plan, environment).await).await
    })?;
    let sample = sample_of(drawn, plan.share * of.sample.share);
    let report = advise(&sample, &mix, &answers).map_err(|error| Failure::of_settings(&error))?;
    print(&output(of, &report, &sample, &answers)?);
    Ok(ExitCode::SUCCESS)
}

fn output(
    of: &AdviseArguments,
    report: &Report,
    sample: &Sample,
    answers: &Answers,
) -> Result<String, Failure> {
    let Some(language) = of.emit else {
        return Ok(match of.json {
            true => report_json(report, answers).to_string() + "\n",
            false => report_text(report, answers),
        });
    };
    let language = match language {
        EmitLanguage::Python => Language::Python,
        EmitLanguage::Typescript => Language::TypeScript,
        EmitLanguage::Csharp => Language::CSharp,
        EmitLanguage::Rust => Language::Rust,
    };
    let count = report.proposals.len();
    let design = report.proposals.get(of.design as usize - 1);
    let design = design
        .ok_or_else(|| Failure::of_words(format!("--design {}: there are {count} proposals", of.design)))?;
    Ok(emit(language, design, sample))
}

/// A file's text, of bounded size.
fn read_text(flag: &str, path: &Path, size_bytes_max: u64) -> Result<String, Failure> {
    let failed = |what: String| Failure::of_words(format!("{flag} {}: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(size_bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    match text.len() as u64 > size_bytes_max {
        true => Err(failed(format!("it has more than {size_bytes_max} bytes"))),
        false => Ok(text),
    }
}

fn read_mix(of: &AdviseArguments) -> Result<Mix, Failure> {
    let failed = |error: String| Failure::of_words(format!("--mix {}: {error}", of.mix.display()));
    let is_toml = of.mix.extension().is_some_and(|extension| extension == "toml");
    if is_toml {
        let text = read_text("--mix", &of.mix, MIX_SIZE_BYTES_MAX)?;
        return parse_mix(&text).map_err(|error| failed(error.to_string()));
    }
    let text = read_text("--mix", &of.mix, LOG_SIZE_BYTES_MAX)?;
    let Some(table) = &of.table else {
        return Err(failed("an access log needs TABLE; a mix of TOML ends with .toml".to_owned()));
    };
    mix_of_access_log(&text, table).map_err(|error| failed(error.to_string()))
}

fn sample_plan(of: &AdviseArguments) -> Result<SamplePlan, Failure> {
    let (source, usual) = match (&of.sample.sample, &of.table) {
        (Some(file), _) => {
            let file = path(file)?;
            let format = format(None, &file)?;
            (SampleSource::File(file, format), 1.0)
        }
        (None, table) => {
            let wanted =
                "--endpoint is missing: the connection string of the table's account, or --sample FILE";
            let endpoint = of.reach.endpoint.clone().ok_or_else(|| Failure::of_words(wanted.to_owned()))?;
            let reach = ReachArguments { endpoint, ca: of.reach.ca.clone(), retry: of.reach.retry.clone() };
            let place = TablePlace {
                address: address("--endpoint", &reach.endpoint, Service::Table)?,
                settings: settings(&reach)?,
                table: table.clone().unwrap_or_default(),
            };
            (SampleSource::Table(Box::new(place), within_connections(of.reach.connections)?), TABLE_SHARE)
        }
    };
    let share = of.sample.draw.unwrap_or(usual);
    let (entities_max, size_bytes_max) = (SAMPLE_ENTITIES_MAX, SAMPLE_SIZE_BYTES_MAX);
    Ok(SamplePlan { source, share, seed: of.sample.seed, entities_max, size_bytes_max })
}

fn sample_of(drawn: Drawn, share: f64) -> Sample {
    let has_keys = drawn.has_keys;
    let entity = |entity: Entity| {
        let mut properties = Vec::with_capacity(entity.properties.len() + 2);
        if has_keys {
            properties.push(("PartitionKey".to_owned(), EdmValue::String(entity.partition_key)));
            properties.push(("RowKey".to_owned(), EdmValue::String(entity.row_key)));
        }
        properties.extend(entity.properties.into_iter().map(|(name, value)| (name, value_of(value))));
        SampleEntity { properties }
    };
    Sample { entities: drawn.entities.into_iter().map(entity).collect(), share }
}

fn value_of(value: Value) -> EdmValue {
    match value {
        Value::String(text) => EdmValue::String(text),
        Value::Boolean(value) => EdmValue::Boolean(value),
        Value::Int32(value) => EdmValue::Int32(value),
        Value::Int64(value) => EdmValue::Int64(value),
        Value::Double(value) => EdmValue::Double(value),
        Value::DateTime(at) => EdmValue::DateTime(at),
        Value::Guid(guid) => EdmValue::Guid(guid),
        Value::Binary(bytes) => EdmValue::Binary(bytes.to_vec()),
    }
}

/// Those of the file; of one that is not there those that are asked for, which it has then.
fn read_answers(file: Option<&Path>) -> Result<Answers, Failure> {
    let Some(file) = file else { return Ok(Answers::default()) };
    let failed = |error: String| Failure::of_words(format!("--answers {}: {error}", file.display()));
    if file.exists() {
        let text = read_text("--answers", file, MIX_SIZE_BYTES_MAX)?;
        return Answers::parse(&text).map_err(|error| failed(error.to_string()));
    }
    let mut answers = Answers::default();
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        ask(&mut answers).map_err(|error| failed(error.to_string()))?;
    }
    std::fs::write(file, answers.to_toml()).map_err(|error| failed(error.to_string()))?;
    Ok(answers)
}

/// Asks until each answer makes sense; an end of the input keeps the defaults.
fn ask(answers: &mut Answers) -> std::io::Result<()> {
    let (mut errors, mut lines) = (std::io::stderr(), std::io::stdin().lock().lines());
    for question in &QUESTIONS {
        loop {
            write!(errors, "{} [{}] ", question.text, answers.text(question))?;
            let Some(line) = lines.next().transpose()? else { return Ok(()) };
            match answers.take(question, &line) {
                Ok(()) => break,
                Err(error) => writeln!(errors, "{error}")?,
            }
        }
    }
    Ok(())
}

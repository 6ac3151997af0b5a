//! Completions for shells and manual pages, made from the arguments as they are.

use crate::arguments::{Arguments, ManArguments};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;

/// Why no manual page is printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManualError {
    #[error("there is no command {0}; larimar help lists them")]
    NoSuchCommand(String),
    #[error("the page can't be written: {0}")]
    Output(#[from] io::Error),
}

/// Writes what `shell` needs to complete command lines.
pub(crate) fn completions(shell: Shell, out: &mut dyn io::Write) -> io::Result<()> {
    // The generator takes a failing writer for a reason to panic.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "larimar", &mut text);
    write(&text, out)
}

/// A reader that has had enough, such as `head`, is no failure.
fn write(text: &[u8], out: &mut dyn io::Write) -> io::Result<()> {
    match out.write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes the manual page of the program, or of one command.
pub(crate) fn man(arguments: &ManArguments, out: &mut dyn io::Write) -> Result<(), ManualError> {
    let mut program = Arguments::command();
    program.build();
    let page = match &arguments.command {
        None => program,
        // Built with the program, it is called `larimar-NAME`.
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => return Err(ManualError::NoSuchCommand(name.clone())),
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(write(&text, out)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_completes_the_commands() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            completions(*shell, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("repair") && text.contains("table-port"), "{shell}");
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
        struct Fails(io::ErrorKind);
        impl io::Write for Fails {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let whole = ManArguments { command: None };
        assert!(man(&whole, &mut Fails(io::ErrorKind::BrokenPipe)).is_ok());
        assert!(completions(Shell::Bash, &mut Fails(io::ErrorKind::BrokenPipe)).is_ok());
        assert!(matches!(man(&whole, &mut Fails(io::ErrorKind::StorageFull)), Err(ManualError::Output(_))));
    }

    #[test]
    fn the_program_and_each_command_have_a_page() {
        let page = |command: Option<&str>| {
            let mut text = Vec::new();
            let arguments = ManArguments { command: command.map(str::to_owned) };
            man(&arguments, &mut text).map(|()| String::from_utf8(text).unwrap())
        };
        assert!(page(None).unwrap().contains("larimar\\-repair(1)"));
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            assert!(page(Some(name)).unwrap().starts_with(".ie"), "{name}");
        }
        assert!(matches!(page(Some("brew")), Err(ManualError::NoSuchCommand(_))));
    }
}

//! The command line of the mock upstream and the measuring tools.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use longmen_benchmark::command;

/// The mock upstream and the measuring tools of Longmen.
#[derive(Debug, Parser)]
#[command(name = "longmen-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve as an upstream whose answers say what reached it.
    Origin(command::origin::Args),
    /// Edit at two admins on one PostgreSQL while one is killed, and compare everything at the end.
    Admins(command::admins::Args),
    /// Edit the routes under load while admin, database, connections and gateway are killed, cut and
    /// restarted, and check that every answer was valid.
    Chaos(command::chaos::Args),
    /// Ask for one of 10,000 routes, in order and by the index, as Easegress published it.
    Easegress(command::easegress::Args),
    /// Measure how soon an edit in the admin is in force on the gateway, among 10,000 rules.
    Edits(command::edits::Args),
    /// Compare the gateway with nginx and with no proxy at all, by processor time per request.
    FirstLook(command::first_look::Args),
    /// Measure what one bad upstream among four does to the answers of the others.
    Failing(command::failing::Args),
    /// Send requests at the moment at which upstreams close idle connections.
    IdleClose(command::idle_close::Args),
    /// Let a service on the published Java starter register itself, and check how it is served.
    Interop(command::interop::Args),
    /// Send so many requests over so many connections and print what came of it as JSON.
    Load(command::load::Args),
    /// Restart by takeover, and stop, under load, and count what was lost.
    Restarts(command::restarts::Args),
    /// Measure what a request costs among 10,000 rules, beside one that is alone.
    Rules(command::rules::Args),
    /// Send mixed traffic for a long time and check every answer, with clients and upstreams that
    /// misbehave.
    Soak(command::soak::Args),
    /// Send odd requests through other proxies and show what they make of them beside Longmen.
    Odd(command::odd::Args),
    /// Ask for a path without pause and print each change of the answer.
    Watch(command::watch::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Origin(args) => command::origin::run(args),
        Command::Admins(args) => command::admins::run(args),
        Command::Chaos(args) => command::chaos::run(args),
        Command::Easegress(args) => command::easegress::run(args),
        Command::Edits(args) => command::edits::run(&args),
        Command::FirstLook(args) => command::first_look::run(args),
        Command::Failing(args) => command::failing::run(args),
        Command::IdleClose(args) => command::idle_close::run(args),
        Command::Interop(args) => command::interop::run(args),
        Command::Load(args) => command::load::run(&args),
        Command::Restarts(args) => command::restarts::run(args),
        Command::Rules(args) => command::rules::run(args),
        Command::Soak(args) => command::soak::run(&args),
        Command::Odd(args) => command::odd::run(&args),
        Command::Watch(args) => command::watch::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longmen-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

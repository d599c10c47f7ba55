//! Benchmarks by name. Each is one function and one row in [`BENCHES`].

use anyhow::{Result, bail};

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "agent",
        about: "what park, decision and invoke add to the engine's own work, in one process",
        run: || cargo_bench("aaep-agent", "consent"),
    },
    Bench {
        name: "durable",
        about: "confirmations that survive a power cut beside a bare append with fdatasync on the \
                same disk; a million pending requests after a restart",
        run: || cargo_bench("aaep-hub", "durable"),
    },
    Bench {
        name: "engine",
        about: "a ledger of a million requests, and one event for a thousand subscriptions",
        run: || {
            cargo_bench("aaep-engine", "ledger")?;
            cargo_bench("aaep-engine", "ledger_memory")?;
            cargo_bench("aaep-shaping", "offer")
        },
    },
    Bench {
        name: "hub",
        about: "the hub under load beside a bare axum: fan-out, connections held, confirmations, \
                a stalled subscriber",
        run: || cargo_bench("aaep-hub", "hub"),
    },
    Bench {
        name: "page",
        about: "the page in Chromium: its script time for an event at 50 a second, and its heap over \
                100,000 events",
        run: crate::page::bench,
    },
    Bench {
        name: "listen",
        about: "from an event to its first words in `aaep listen`, beside a bare client; memory over \
                100,000 events",
        run: || cargo_bench("aaep-cli", "listen"),
    },
    Bench {
        name: "validate",
        about: "validation of single messages beside the jsonschema crate and a bare parse",
        run: || {
            cargo_bench("aaep-types", "validate")?;
            cargo_bench("aaep-types", "allocations")
        },
    },
];

/// Runs a benchmark that a crate has in its `benches` folder.
fn cargo_bench(package: &str, bench: &str) -> Result<()> {
    let status = std::process::Command::new("cargo")
        .args(["bench", "--quiet", "--package", package, "--bench", bench])
        .status()?;
    if !status.success() {
        bail!("the benchmark {bench} of {package} failed; its own words are above");
    }
    Ok(())
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            println!("{}", list());
            Ok(())
        }
        [name] => match BENCHES.iter().find(|bench| bench.name == name) {
            Some(bench) => (bench.run)(),
            None => bail!("there is no benchmark {name:?}. {}", list()),
        },
        _ => bail!("name one benchmark at a time. {}", list()),
    }
}

fn list() -> String {
    let mut text = String::from("Benchmarks:");
    for bench in BENCHES {
        text.push_str(&format!("\n  {}: {}", bench.name, bench.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_benchmark_is_refused_with_the_list() {
        let error = run(&["nonsense".to_owned()]).unwrap_err();
        assert!(error.to_string().contains(&list()));
    }
}

//! This process as the kernel sees it, under the names that every Prometheus client uses. Where
//! there is no `/proc`, what is read from it is absent.

use std::{fs, sync::atomic::AtomicU64};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Ticks in a second, as `/proc` counts them: Linux shows 100 to every program, whatever its own.
const TICKS: f64 = 100.0;

type Amount = Gauge<f64, AtomicU64>;

pub(super) fn registry() -> Registry {
    let mut registry = Registry::default();
    let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|it| Stat::parse(&it));
    if let Some(stat) = stat {
        let cpu = Counter::<f64, AtomicU64>::default();
        cpu.inc_by(stat.cpu_seconds);
        registry.register("process_cpu_seconds", "Time of the processor used", cpu);
        amount(&mut registry, "process_virtual_memory_bytes", "Memory mapped", stat.virtual_bytes);
        amount(&mut registry, "process_threads", "Threads", stat.threads);
        if let Some(booted) = booted() {
            let began = booted + stat.began;
            amount(&mut registry, "process_start_time_seconds", "Start, since 1970", began);
        }
    }
    if let Some(bytes) = resident() {
        amount(&mut registry, "process_resident_memory_bytes", "Memory in use", bytes);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        // One of them is the folder that is being read.
        let open = entries.count().saturating_sub(1);
        let open = f64::from(u32::try_from(open).unwrap_or(u32::MAX));
        amount(&mut registry, "process_open_fds", "Open files and sockets", open);
    }
    if let Some(most) = most_files() {
        amount(&mut registry, "process_max_fds", "Files and sockets that may be open", most);
    }
    registry
}

fn amount(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Amount::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    threads: f64,
    /// Seconds from the boot of the machine.
    began: f64,
    virtual_bytes: f64,
}

impl Stat {
    /// The name of the program, in parentheses, may hold anything: what counts comes after it.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1, and the first two fields are cut off.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            threads: field(20)?,
            began: field(22)? / TICKS,
            virtual_bytes: field(23)?,
        })
    }
}

/// When the machine was started, in seconds since 1970.
fn booted() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn resident() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

fn most_files() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_called_anything() {
        let text = "7 (a) R b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 12345 1048576 100 18446744073709551615";
        let stat = Stat::parse(text).unwrap();
        let right =
            Stat { cpu_seconds: 3.0, threads: 9.0, began: 123.45, virtual_bytes: 1_048_576.0 };
        assert_eq!(stat, right);
        assert_eq!(Stat::parse("7 (x) S 1"), None);
    }
}

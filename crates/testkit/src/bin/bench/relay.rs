//! The floor: a process that moves bytes from one connection to another through its own memory.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::backlog::Measurement;
use crate::{now, usage};

/// Bytes per read and write; larger ones leave the processor's cache and are slower.
const CHUNK_BYTES: usize = 256 * 1024;

/// The relay's own process: prints the address it listens on, takes one connection, and copies what
/// comes in to `address`. Not by `io::copy`, which lets the kernel move the bytes: a mirror must
/// look at them.
#[expect(
    clippy::disallowed_macros,
    reason = "the parent reads the address from the output"
)]
pub fn run(address: &str) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("listen")?;
    println!("{}", listener.local_addr().context("own address")?);
    let (mut from, _) = listener.accept().context("accept")?;
    let mut to = TcpStream::connect(address).context("connect")?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).context("read")?;
        if read == 0 {
            break;
        }
        to.write_all(&chunk[..read]).context("write")?;
    }
    to.shutdown(Shutdown::Write).context("shut down")?;
    // Stays until it was measured.
    io::stdin()
        .read_to_end(&mut Vec::new())
        .context("wait for the end")?;
    Ok(())
}

/// Sends `bytes`, which are so many `records`, through a relay process.
pub fn measure(records: u64, bytes: u64) -> Result<Measurement> {
    let sink = TcpListener::bind(("127.0.0.1", 0)).context("listen")?;
    let started = now();
    let mut relay = spawn(&sink.local_addr().context("own address")?.to_string())?;
    let address = first_line(&mut relay)?;
    let sender = thread::spawn(move || send(&address, bytes));
    let (mut from, _) = sink.accept().context("accept")?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut first_record = None;
    let mut received = 0;
    loop {
        let read = from.read(&mut chunk).context("read")?;
        first_record.get_or_insert_with(|| started.elapsed());
        if read == 0 {
            break;
        }
        received += u64::try_from(read)?;
    }
    let ended = started.elapsed();
    ensure!(
        received == bytes,
        "{received} of {bytes} bytes came through"
    );
    let first_record = first_record.unwrap_or(ended);
    let pid = relay.id();
    let measurement = Measurement {
        first_record,
        copying: ended - first_record,
        copied: records,
        copied_bytes: bytes,
        cpu_starting: Duration::ZERO,
        cpu_copying: usage::cpu(pid)?,
        peak_memory_bytes: usage::peak_memory_bytes(pid)?,
        cut_of: None,
    };
    drop(relay.stdin.take());
    relay.wait().context("end of the relay")?;
    sender
        .join()
        .map_err(|_| anyhow::anyhow!("the sender panicked"))??;
    Ok(measurement)
}

fn spawn(sink: &str) -> Result<Child> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command
        .args(["--relay-to", sink])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().context("start the relay")
}

fn first_line(relay: &mut Child) -> Result<String> {
    let output = relay.stdout.take().context("output of the relay")?;
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).context("read address")?;
    Ok(line.trim().to_owned())
}

fn send(address: &str, bytes: u64) -> Result<()> {
    let mut relay = TcpStream::connect(address).context("connect to the relay")?;
    let chunk = vec![b'x'; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        relay.write_all(&chunk[..now]).context("send")?;
        left -= u64::try_from(now)?;
    }
    relay.shutdown(Shutdown::Write).context("end of sending")
}

// Tickets that two threads count in a static without a lock: both take the same
// number, and one count is lost.
// CAUSE kind=atomicity-violation variable=*TAKEN pattern=RWW
// FAILS signal=SIGABRT says="tickets"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 140
// RUNS pass: 140 5
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static mut TAKEN: u32 = 0;
static DESK: Mutex<()> = Mutex::new(());

fn print(number: u32) {
    let line = format!("ticket {}\n", number);
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(40));
}

#[inline(never)]
fn take() -> u32 {
    let _desk = if cfg!(fixed) { Some(DESK.lock().unwrap()) } else { None };
    let number = unsafe { TAKEN }; // BUG 1
    print(number);
    unsafe { TAKEN = number + 1 }; // BUG 2 3
    number
}

fn main() {
    let delays: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let threads: Vec<_> = delays
        .into_iter()
        .map(|ms| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(ms));
                take()
            })
        })
        .collect();
    let count = threads.len() as u32;
    for t in threads {
        t.join().unwrap();
    }
    let taken = unsafe { TAKEN };
    if taken != count {
        eprintln!("{} of {} tickets", taken, count);
        std::process::abort();
    }
}

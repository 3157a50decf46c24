// Threads count under a Mutex of the standard library, which is a futex and no lock of the C library.
use std::sync::Mutex;
use std::thread;

const ROUNDS: u64 = 5;

static TALLY: Mutex<u64> = Mutex::new(0);
static mut LAST: u64 = 0;

#[inline(never)]
fn count(by: u64) -> u64 {
    let mut tally = TALLY.lock().unwrap();
    *tally += by;
    let now = *tally;
    unsafe { std::ptr::write_volatile(&raw mut LAST, now) }; // LAST
    now
}

fn main() {
    let threads: Vec<_> = (1..=2)
        .map(|by| {
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    count(by);
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    if count(0) == 15 {
        std::process::abort();
    }
}

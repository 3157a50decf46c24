// An index behind the end of a slice, in a thread.
// FLAGS: -C panic=abort
use std::thread;

#[inline(never)]
fn pick(values: &[u64], index: usize) -> u64 {
    // WANT: rust-panic:@LINE+1
    values[index]
}

fn main() {
    let index = if cfg!(fixed) { 1 } else { 6 + std::env::args().count() };
    let worker = thread::Builder::new().name("picker".into()).spawn(move || {
        let values = vec![1u64, 2, 3];
        pick(&values, index)
    });
    let value = worker.unwrap().join().unwrap();
    std::process::exit((value != 2) as i32);
}

// A raw pointer to a boxed session outlives the box.
// OPTIONS: stacks=12
use std::hint::black_box;

struct Session {
    number: u64,
    peer: *const u64, // whose alignment a debug build looks at before it reads
}

#[inline(never)]
fn peer(s: *const Session) -> u64 {
    // WANT: use-after-free read:@LINE+1
    unsafe { *(*s).peer }
}

static PEER: u64 = 9;

fn main() {
    let session = Box::new(Session { number: 1, peer: &PEER }); // @made
    let raw = black_box(Box::into_raw(session));
    black_box(unsafe { (*raw).number });
    if !cfg!(fixed) {
        drop(unsafe { Box::from_raw(raw) }); // @freed
    }
    // HEAP: use-after-free object=16 alloc:@made free:@freed
    let number = peer(black_box(raw));
    if cfg!(fixed) {
        drop(unsafe { Box::from_raw(raw) });
    }
    std::process::exit((number != 9) as i32);
}

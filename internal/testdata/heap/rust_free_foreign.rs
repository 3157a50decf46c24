// A C library's free is given a pointer that Rust's slice is in the middle of.
use std::hint::black_box;

extern "C" {
    fn malloc(n: usize) -> *mut u8;
    fn free(p: *mut u8);
}

fn main() {
    let p = black_box(unsafe { malloc(60) }); // @made
    let text = unsafe { std::slice::from_raw_parts_mut(p, 60) };
    text.fill(b'r');
    let tail = black_box(&mut text[if cfg!(fixed) { 0 } else { 12 }..]);
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=60 at=12 alloc:@made call:@LINE+1
    unsafe { free(tail.as_mut_ptr()) };
    black_box(());
}

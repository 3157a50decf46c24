// An unsafe loop writes one element more than the buffer was allocated for.
use std::alloc::{alloc, dealloc, Layout};
use std::hint::black_box;

#[inline(never)]
fn fill(p: *mut u32, n: usize) {
    for i in 0..n {
        unsafe { p.add(i).write(0x7172_7374) };
    }
}

fn main() {
    let layout = Layout::array::<u32>(25).unwrap();
    let p = black_box(unsafe { alloc(layout) }); // @made
    fill(p.cast(), if cfg!(fixed) { 25 } else { 26 });
    black_box(p);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=100 offset=100 bytes=4 text=tsrq alloc:@made call:@LINE+1
    unsafe { dealloc(p, layout) };
    black_box(());
}

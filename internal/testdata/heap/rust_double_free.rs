// Two vectors are made of one allocation's raw parts.
// OPTIONS: stacks=12
use std::hint::black_box;

#[inline(never)]
fn give_back(p: *mut u8) {
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=500 alloc:@made free:@LINE+1<@first call:@LINE+1<@second
    drop(unsafe { Vec::from_raw_parts(p, 0, 500) });
    black_box(());
}

fn main() {
    let mut v: Vec<u8> = Vec::with_capacity(500); // @made
    let p = black_box(v.as_mut_ptr());
    std::mem::forget(v);
    give_back(p); // @first
    if !cfg!(fixed) {
        give_back(p); // @second
    }
    black_box(());
}

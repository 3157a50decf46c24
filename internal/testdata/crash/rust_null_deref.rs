// A raw pointer that is null is read in an unsafe block.
// VARIANTS: O2 O2-nopie
struct Node {
    value: u32,
    next: *const Node,
}

#[inline(never)]
fn second_value(node: &Node) -> u32 {
    // WANT: null-pointer read:@LINE+1
    unsafe { (*node.next).value }
}

fn main() {
    let last = Node { value: 2, next: std::ptr::null() };
    let next: *const Node = if cfg!(fixed) { &last } else { std::ptr::null() };
    let first = Node { value: std::env::args().count() as u32, next };
    std::process::exit((second_value(std::hint::black_box(&first)) != 2) as i32 + (first.value == 0) as i32);
}

// An index out of bounds that a call stored before. The length is right.
struct Cursor {
    at: usize,
}

#[inline(never)]
fn rewind(c: &mut Cursor) {
    c.at = 40;
}

#[inline(never)]
fn read(v: &[u8], c: &Cursor) -> u8 {
    v[c.at]
}

fn main() {
    let v: Vec<u8> = std::env::args().next().unwrap().bytes().take(4).collect();
    let mut c = Cursor { at: 1 };
    if std::env::args().count() < 5 {
        rewind(&mut c);
    }
    println!("{}", read(&v, &c));
}

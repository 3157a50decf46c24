// Panics because of a value that is not there.
use std::collections::HashMap;

struct Settings { map: HashMap<String, String>, ports: Vec<u32> }

impl Settings {
    #[inline(never)]
    fn find(&self, key: &str) -> Option<&String> { self.map.get(key) }
    #[inline(never)]
    fn port(&self, at: usize) -> Option<u32> { self.ports.get(at).copied() }
    #[inline(never)]
    fn parsed(&self, text: &str) -> Result<u32, std::num::ParseIntError> { text.parse::<u32>() }
    #[inline(never)]
    fn text(&self, key: &str) -> Option<String> { self.map.get(key).cloned() }
}

#[inline(never)]
fn pointer(s: &Settings, key: &str) -> usize { s.find(key).unwrap().len() }
#[inline(never)]
fn number(s: &Settings, at: usize) -> u32 { s.port(at).expect("a port") + 1 }
#[inline(never)]
fn result(s: &Settings, text: &str) -> u32 { s.parsed(text).unwrap() + 1 }
#[inline(never)]
fn owned(s: &Settings, key: &str) -> usize { s.text(key).unwrap().len() }

fn main() {
    let mut s = Settings { map: HashMap::new(), ports: vec![80] };
    s.map.insert("host".to_string(), "here".to_string());
    let args: Vec<String> = std::env::args().collect();
    let n = args.len();
    match args.get(1).map(|a| a.as_str()).unwrap_or("") {
        "pointer" => println!("{}", pointer(&s, "port")),
        "number" => println!("{}", number(&s, n)),
        "result" => println!("{}", result(&s, &args[1])),
        "owned" => println!("{}", owned(&s, "port")),
        _ => (),
    }
}

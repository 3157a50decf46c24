set text "The quick brown fox jumps over the lazy dog"
puts [string length $text]:[string range $text 4 8]:[string toupper $text]
puts [regexp -all -inline {[a-z]+o[a-z]*} $text]
puts [regsub -all {(\w)(\w*)} $text {\2\1}]
puts [format "%5d|%-8s|%08.3f|%x|%c" 42 ab 3.25 255 65]
puts [string map {quick slow fox snail} $text]
puts [string repeat "ab" 30] 
puts [string match {*br?wn*} $text]
switch -glob -- $text { a* {puts a} T* {puts T} default {puts none} }
set n 0
while {1} { incr n; if {$n % 2} continue; if {$n > 10} break }
puts $n
puts [scan "12 abc 3.5" "%d %s %f" a b c]:$a:$b:$c
proc rest {a {b 5} args} { return "$a $b $args" }
puts [rest 1] ; puts [rest 1 2 3 4]
puts [lmap x {1 2 3} {expr {$x ** 2}}]

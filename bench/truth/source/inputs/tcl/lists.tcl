set l {}
for {set i 0} {$i < 60} {incr i} { lappend l [expr {($i * 7919) % 101}] }
puts [lsort -integer $l]
puts [lrange [lsort -decreasing -unique $l] 2 9]
proc fib {n} { if {$n < 2} { return $n }; expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
puts [fib 12]
array set a {one 1 two 2 three 3}
foreach k [lsort [array names a]] { puts "$k=$a($k)" }
puts [join [split "a:b:c:d" :] ", "]
set d [dict create x 1 y {2 3}]
dict set d z [dict create q 9]
puts "[dict get $d z q] [dict keys $d]"
puts [catch {error "an error"} message]:$message

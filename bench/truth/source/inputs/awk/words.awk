BEGIN { FS = "[ \t,.;()]+"; OFS = "-" }
{ lines++; for (i = 1; i <= NF; i++) if (length($i) > 2) { n[tolower($i)]++; total += length($i) } }
/[a-z]+[0-9]/ { $2 = "changed"; seen = seen substr($0, 1, 8) "|" }
END {
  for (w in n) if (n[w] > best) best = n[w]
  print lines, total, best, length(seen)
  s = sprintf("%5d|%-6s|%e|%c", 42, "ab", 3.5, 65); print s
  k = split("b:a:d:c", parts, ":"); for (i = k; i > 0; i--) printf "%s ", parts[i]; print ""
  t = "aXbXc"; gsub(/X/, "<&>", t); print t, match(t, /<X>c/), RSTART, RLENGTH, index(t, "b")
}

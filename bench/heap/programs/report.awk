# Counts of words and of pairs, by line length; fields rewritten.
{
	for (i = 1; i <= NF; i++) {
		count[$i]++
		if (i > 1)
			pair[$(i - 1) " " $i]++
	}
	lengths[length($0)] = lengths[length($0)] " " NR
	gsub(/[aeiou]+/, "&&")
	$2 = toupper($2)
	changed += length($0)
}
END {
	n = asorti(count, words)
	for (i = 1; i <= n; i++)
		print words[i], count[words[i]]
	for (p in pair)
		if (pair[p] > 20)
			frequent++
	for (l in lengths)
		total += split(lengths[l], parts, " ") * l
	print n, frequent, total, changed
}

s/\([a-z]*\) \([a-z]*\)/\2 \1/g
/the/{
N
s/\n/ + /
y/abc/xyz/
}
2,5d
$a\
the last line

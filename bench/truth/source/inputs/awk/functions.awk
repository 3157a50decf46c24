function fact(n) { return n < 2 ? 1 : n * fact(n - 1) }
function fill(a, n,   i) { for (i = 0; i < n; i++) a[i, n] = i * i; delete a[0, n]; return n }
BEGIN {
  for (i = 1; i < 15; i++) print i, fact(i)
  fill(grid, 40); for (k in grid) { split(k, p, SUBSEP); sum += grid[k] + p[1] }
  print sum, (3, 40) in grid, (0, 40) in grid
  while ((getline line < "/dev/null") > 0) print line
  print substr("hello", 2, 3) toupper("x") length() (1 == 1.0) ("10" < "9") (10 < 9)
  do { x += 2 } while (x < 9); print x ^ 2 % 7, -x, !x, x++ + ++x
  printf("%s %5.2f %o %X\n", "end", 3.14159, 8, 255)
  exit 0
}

define f(n) { auto a[], i, s
 for (i = 0; i < n; i++) a[i] = i * i
 for (i = 0; i < n; i++) s += a[i]
 return (s) }
"sum "; f(30); obase = 16; f(300); ibase = 7; 666 / 5
scale = 30; sqrt(2); e(1); 2 ^ 200
x = 5; while (x > 0) { if (x % 2 == 0) print x, " even\n" else print x, " odd\n"; x -= 1 }
length(123456.789); scale(1.2345)
quit

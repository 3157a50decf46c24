scale = 60
a(1) * 4
obase = 20
123456789 ^ 7
obase = 3
-99999 / 7
obase = 10
for (i = 1; i < 60; i += 7) { i ^ i % 1000003; }
quit

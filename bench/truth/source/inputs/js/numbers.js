var sum = 0, list = [0.1, 1e21, -5, 1 / 0, NaN, 123456.789, 5e-324, 0xff];
for (var i = 0; i < list.length; i++) print(list[i], list[i].toFixed(3), list[i].toExponential(2), list[i].toPrecision(4), list[i].toString(7).substring(0, 20));
do { sum += i-- * 2; } while (i > 0);
print(sum, sum % 7, sum & 12, sum | 3, sum ^ 5, sum >> 1, sum >>> 2, -sum << 3, !sum, sum ? "yes" : "no");
print(parseFloat("3.5abc"), parseInt("0x1F"), parseInt("z", 36), Number("  12 "), Number(""), +"1e3", +[], +{});
print(Math.floor(-1.5), Math.ceil(1.2), Math.abs(-3), Math.pow(2, 10), Math.sqrt(2), Math.min(), Math.atan2(1, 1), Math.exp(1), Math.log(10));
print(new Date(86400000 * 365).toUTCString(), new Date(2020, 1, 29).getDate(), Date.UTC(1999, 11, 31), new Date("2001-02-03T04:05:06Z").getTime());
var memo = {}; function fib(n) { return n < 2 ? n : memo[n] || (memo[n] = fib(n - 1) + fib(n - 2)); } print(fib(20));
var sieve = []; for (var p = 2; p < 200; p++) { if (sieve[p]) continue; for (var q = p * p; q < 200; q += p) sieve[q] = true; }
print(sieve.length, sieve.map(function (x, n) { return n; }).length);

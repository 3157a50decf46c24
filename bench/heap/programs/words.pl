# A concordance: every word with its count and its neighbours, then the text
# turned over line by line.
use strict;
use warnings;

my (%count, %next, @lines);
while (my $line = <STDIN>) {
    chomp $line;
    my @words = map { lc } $line =~ /(\w+)/g;
    for my $i (0 .. $#words) {
        $count{$words[$i]}++;
        push @{ $next{$words[$i]} }, $words[$i + 1] if $i < $#words && @{ $next{$words[$i]} // [] } < 50;
    }
    (my $changed = $line) =~ s/(\w)(\w*)/$2$1/g;
    push @lines, join ' ', reverse split / /, $changed;
}
for my $word (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count) {
    printf "%s %d %s\n", $word, $count{$word}, join ',', sort @{ $next{$word} // [] };
}
print "$_\n" for sort @lines;

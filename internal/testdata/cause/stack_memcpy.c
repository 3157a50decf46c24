// A packet of records, each with its length before it. The length is checked
// against the packet, and not against where the record goes.
// CAUSE kind=stack-smashing
// FAILS signal=SIGABRT says="stack smashing"
// RUNS: 3
// FLAGS: -fstack-protector-strong
// INPUT fail: 4abcd
// INPUT fail: 99qrstuvwxyzqrstuvwxyzqrstuvwxyzqrstuvwxyzqrstuvwxyzqrstuvwxyzqrstuvwxyzqrstuvwxyz
// INPUT pass: 4abcd
// INPUT pass: 20qrstuvwxyzqrstuvwxyz
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checksums[16];
static int records;

struct packet {
	char bytes[256];
	size_t length;
};

static unsigned checksum(const char *bytes, size_t n)
{
	unsigned sum = 1;

	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + (unsigned char)bytes[i];
	return sum;
}

__attribute__((noinline)) static void take_record(const struct packet *p, size_t at, size_t length)
{
	char record[48];

	if (length > p->length - at)
		length = p->length - at;
#ifdef FIXED
	if (length > sizeof(record))
		length = sizeof(record);
#endif
	memset(record, ' ', sizeof(record));
	memcpy(record, p->bytes + at, length); // BUG
	checksums[records++ & 15] = checksum(record, sizeof(record));
}

static void take_packet(const struct packet *p)
{
	char *end;
	unsigned long length = strtoul(p->bytes, &end, 10);

	take_record(p, (size_t)(end - p->bytes), length);
}

int main(int argc, char **argv)
{
	static struct packet p;

	while (fgets(p.bytes, sizeof(p.bytes), stdin)) {
		p.length = strcspn(p.bytes, "\n");
		take_packet(&p);
	}
	printf("%d records, %u, %s\n", records, checksums[0], argc > 1 ? argv[1] : "");
	return 0;
}

// memcpy from a packet that has no payload.
#include <string.h>

struct packet {
    size_t length;
    const char *payload;
};
static struct packet packet = {100};
static char buffer[128];
static char real[128] = "x";

__attribute__((noinline, noipa)) static void receive(const struct packet *p)
{
    // WANT: null-pointer read:@LINE+1
    memcpy(buffer, p->payload, p->length);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
#ifdef FIXED
    packet.payload = real;
#endif
    receive(&packet);
    return buffer[0] != 'x';
}

#include <stdio.h>
struct user { int id, logins; };
struct session { int id; struct user *user; };
static struct user users[2];
static struct session sessions[2] = {{1, &users[0]}, {2, &users[1]}};
__attribute__((noinline)) static void logout(struct session *s) { s->user = 0; }
__attribute__((noinline)) static void login(struct session *s) { s->user->logins++; }
int main(void) { login(&sessions[0]); logout(&sessions[1]); login(&sessions[1]); return 0; }

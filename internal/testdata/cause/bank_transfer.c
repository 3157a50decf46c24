// A bank that looks whether there is enough money, asks another department, and
// withdraws: under the account's lock each time, but not all the time.
// CAUSE kind=atomicity-violation variable=accounts[0].balance pattern=RWR|RWW
// FAILS signal=SIGABRT says="overdrawn"
// RUNS fail: 5 12
// RUNS fail: 12 5
// RUNS pass: 5 130
// RUNS pass: 130 5
// COMPILERS: gcc clang
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCOUNTS = 3 };

struct account {
	pthread_mutex_t lock;
	long balance;
	unsigned transfers;
};

static struct account accounts[ACCOUNTS];
static pthread_mutex_t audit_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned audited;

struct order {
	int from, to, at;
	long amount;
};

static void audit(const struct order *o)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "%ld from %d to %d\n", o->amount, o->from, o->to);

	pthread_mutex_lock(&audit_lock);
	audited++;
	write(1, line, (size_t)n);
	pthread_mutex_unlock(&audit_lock);
	usleep(40000);
}

static int has(struct account *a, long amount)
{
	int enough;

	pthread_mutex_lock(&a->lock);
	enough = a->balance >= amount; // BUG 1
	pthread_mutex_unlock(&a->lock);
	return enough;
}

static void withdraw(struct account *a, long amount)
{
	pthread_mutex_lock(&a->lock);
#ifdef FIXED
	if (a->balance < amount)
		amount = 0;
#endif
	a->balance -= amount; // BUG 2 3
	if (a->balance < 0) {
		fprintf(stderr, "account overdrawn by %ld\n", -a->balance);
		abort();
	}
	a->transfers++;
	pthread_mutex_unlock(&a->lock);
}

static void deposit(struct account *a, long amount)
{
	pthread_mutex_lock(&a->lock);
	a->balance += amount;
	pthread_mutex_unlock(&a->lock);
}

static void *clerk(void *arg)
{
	const struct order *o = arg;

	usleep((useconds_t)o->at * 1000);
	if (!has(&accounts[o->from], o->amount))
		return NULL;
	audit(o);
	withdraw(&accounts[o->from], o->amount);
	deposit(&accounts[o->to], o->amount);
	return NULL;
}

int main(int argc, char **argv)
{
	struct order orders[] = { { 0, 1, argc > 1 ? atoi(argv[1]) : 5, 80 }, { 0, 2, argc > 2 ? atoi(argv[2]) : 130, 70 } };
	pthread_t threads[2];

	for (int i = 0; i < ACCOUNTS; i++) {
		pthread_mutex_init(&accounts[i].lock, NULL);
		accounts[i].balance = 100;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, clerk, &orders[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld %ld\n", accounts[0].balance, accounts[1].balance, accounts[2].balance);
	return 0;
}

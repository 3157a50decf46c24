/* Threads with a connection each write to and read from one database, whose
 * journal mode is the argument. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROWS = 60 };

static void check(sqlite3 *db, int result)
{
	if (result != SQLITE_OK) {
		fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
		exit(2);
	}
}

static sqlite3 *connect(void)
{
	sqlite3 *db;
	check(NULL, sqlite3_open("work.db", &db));
	check(db, sqlite3_busy_timeout(db, 60000));
	return db;
}

static void *work(void *argument)
{
	long number = (long)argument;
	sqlite3 *db = connect();
	for (int i = 0; i < ROWS; i++) {
		char *sql = sqlite3_mprintf("insert into t values (%ld, %d, randomblob(100), hex(randomblob(20)))", number, i);
		check(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
		sqlite3_free(sql);
		if (i % 10 == 0)
			check(db, sqlite3_exec(db, "select a, count(*), max(d) from t group by a order by 3", NULL, NULL, NULL));
	}
	check(db, sqlite3_close(db));
	return NULL;
}

int main(int argc, char **argv)
{
	sqlite3 *db = connect();
	char *sql = sqlite3_mprintf("pragma journal_mode=%s; pragma synchronous=off; create table t (a, b, c, d); create index i on t (d)",
				    argc > 1 ? argv[1] : "delete");
	check(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
	sqlite3_free(sql);
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check(db, sqlite3_exec(db, "pragma integrity_check", NULL, NULL, NULL));
	abort();
}

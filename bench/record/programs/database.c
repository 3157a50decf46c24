/* database FILE ROWS: threads with a connection each write to one SQLite database
 * and read from it. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static const char *path;
static int rows;

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return;
	fprintf(stderr, "database: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static sqlite3 *connect(void)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		exit(1);
	sqlite3_busy_timeout(db, 60000);
	return db;
}

static void *work(void *argument)
{
	sqlite3 *db = connect();
	char sql[200];

	for (int i = 0; i < rows; i++) {
		snprintf(sql, sizeof(sql), "insert into t values (%ld, %d, randomblob(100), hex(randomblob(20)))", (long)argument, i);
		run(db, i % 50 ? sql : "select a, count(*), max(d) from t group by a order by 3");
	}
	sqlite3_close(db);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 3)
		return 2;
	path = argv[1];
	rows = atoi(argv[2]);
	sqlite3 *db = connect();
	run(db, "pragma journal_mode=wal; pragma synchronous=off; create table t (a, b, c, d); create index i on t (d)");
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	run(db, "pragma integrity_check");
	return 0;
}

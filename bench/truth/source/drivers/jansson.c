/* Reads a file of JSON, prints it in two forms, and changes a copy. */
#include <stdio.h>
#include <stdlib.h>
#include "jansson.h"

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *value = json_load_file(argv[argc - 1], JSON_DECODE_ANY, &error), *copy, *added;
    char *text;
    const char *key;
    json_t *item;

    if (!value) {
        printf("%d:%d: %s\n", error.line, error.column, error.text);
        return 0;
    }
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_INDENT(2) | JSON_SORT_KEYS);
    puts(text);
    free(text);
    copy = json_deep_copy(value);
    added = json_pack("{s:i, s:[f, s, n], s:b}", "number", 12, "list", 2.5, "text", "flag", 1);
    if (json_is_object(copy)) {
        json_object_update(copy, added);
        json_object_foreach(copy, key, item)
            printf("%s: %d\n", key, json_typeof(item));
        json_object_del(copy, "number");
    } else if (json_is_array(copy)) {
        json_array_append(copy, added);
        json_array_insert_new(copy, 0, json_string("first"));
        json_array_remove(copy, json_array_size(copy) / 2);
    }
    text = json_dumps(copy, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    printf("%s\n%d\n", text ? text : "none", json_equal(copy, value));
    free(text);
    json_decref(added);
    json_decref(copy);
    json_decref(value);
    return 0;
}

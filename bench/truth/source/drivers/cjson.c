/* Reads a file of JSON, prints it in three forms, and changes a copy. */
#include <stdio.h>
#include <stdlib.h>
#include "cJSON.h"
#include "cJSON_Utils.h"

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    char *text = calloc(1, 1 << 20), *pretty, *plain;
    cJSON *value, *copy, *patch;

    if (!f || !text)
        return 1;
    text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    fclose(f);
    value = cJSON_Parse(text);
    free(text);
    if (!value) {
        puts("no JSON");
        return 0;
    }
    pretty = cJSON_Print(value);
    plain = cJSON_PrintUnformatted(value);
    puts(pretty);
    puts(plain);
    copy = cJSON_Duplicate(value, 1);
    if (cJSON_IsObject(copy)) {
        cJSON_AddStringToObject(copy, "added", "a string\nwith \"quotes\"");
        cJSON_AddNumberToObject(copy, "number", 12.5);
        cJSON_DeleteItemFromObject(copy, copy->child->string);
        cJSONUtils_SortObject(copy);
    } else if (cJSON_IsArray(copy)) {
        cJSON_AddItemToArray(copy, cJSON_CreateString("last"));
        cJSON_DeleteItemFromArray(copy, 0);
        cJSON_InsertItemInArray(copy, 1, cJSON_CreateBool(1));
    }
    printf("%d\n", cJSON_Compare(value, copy, 1));
    patch = cJSONUtils_GeneratePatches(value, copy);
    free(pretty);
    pretty = cJSON_PrintBuffered(patch, 16, 1);
    puts(pretty);
    printf("%d\n", cJSONUtils_ApplyPatches(value, patch));
    cJSON_Delete(patch);
    cJSON_Delete(copy);
    cJSON_Delete(value);
    free(pretty);
    free(plain);
    return 0;
}

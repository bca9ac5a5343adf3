/* What `hone doctor` says of disks: how fast the current folder reads, and whether that of the data reads as fast as the loader needs. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor.h"
#include "core/json_whole.h"
#include "data/files.h"

static const double SECONDS = 0.5;          /* of reading */

void doctor_read_disk(struct doctor_disk *d) { d->here_known = disk_read_folder(&d->here, ".", SECONDS, &d->not_here) == OK; }

/* The largest file of the data, and the bytes of all. */
void doctor_read_data(struct doctor_data *d, const struct config *c, int64_t tokens)
{
    struct file_list files;
    struct stat s;
    struct error unsaid;
    double largest = 0;
    *d = (struct doctor_data){.tokens = tokens, .bin = c->data.source == SOURCE_BIN};
    if ((c->data.source != SOURCE_BIN && c->data.source != SOURCE_TEXT) || c->data.domains.n || file_list_init(&files, c->data.path, "data", &unsaid) != OK)
        return;
    for (int i = 0; i < files.n; i++) {
        if (stat(files.paths[i], &s) || !S_ISREG(s.st_mode))
            continue;
        d->bytes += (double)s.st_size;
        if ((double)s.st_size > largest) {
            largest = (double)s.st_size;
            snprintf(d->file, sizeof d->file, "%s", files.paths[i]);
        }
    }
    file_list_release(&files);
    d->known = *d->file && disk_read_file(&d->speed, d->file, SECONDS, &unsaid) == OK;
}

/* A run looks at all of its data once before it trains. */
double doctor_data_need(const struct doctor_data *d, const struct config *c, double step_ms, double free_bytes)
{
    if (!d->bin || d->tokens < 1 || !(step_ms > 0))
        return 0;
    const double samples_per_s = (double)(c->train.batch_size * c->train.accumulate) / step_ms * 1e3;
    return disk_need(samples_per_s, (double)(c->model.seq + 1) * d->bytes / (double)d->tokens, d->bytes, free_bytes);
}

bool doctor_data_words(const struct doctor_data *d, double need, char out[DATA_WORDS])
{
    const double rate = disk_bytes_per_s(&d->speed);
    const bool slow = disk_is_slow(&d->speed, need);
    char reads[32], read[32], wants[32], all[32];
    human_bytes(rate, reads);
    human_bytes(d->speed.bytes, read);
    human_bytes(need, wants);
    human_bytes(d->bytes, all);
    const char *name = strrchr(d->file, '/') ? strrchr(d->file, '/') + 1 : d->file;
    if (d->speed.bytes < DISK_LEAST_BYTES)
        snprintf(out, DATA_WORDS, "disk: '%.80s' has %s: too little to time its disk", name, read);
    else if (need <= 0)
        snprintf(out, DATA_WORDS, "disk: '%.80s' reads at %s/s (%s of it, %s); a run reads its %s of data once, when it starts, in %.2g s", name, reads, read,
                 disk_way_words(d->speed.way), all, d->bytes / rate);
    else
        snprintf(out, DATA_WORDS, "disk: '%.80s' reads at %s/s (%s of it, %s); its %s do not stay in memory, and steps at the measured peak need %s/s%s", name, reads,
                 read, disk_way_words(d->speed.way), all, wants, slow ? ": they wait for it; copy it to a faster disk" : "");
    return slow;
}

void doctor_print_disk(const struct doctor_disk *d, double free_bytes)
{
    char room[32], reads[32], read[32];
    human_bytes(free_bytes, room);
    human_bytes(disk_bytes_per_s(&d->here), reads);
    human_bytes(d->here.bytes, read);
    if (d->here_known)
        printf("disk       here: %s free, reads at %s/s (%s, %s)\n", room, reads, read, disk_way_words(d->here.way));
    else
        printf("disk       here: %s free; how fast it reads is not known: %s\n", room, d->not_here.text);
}

static const char *way_word(enum disk_way way)
{
    static const char *const words[] = {"direct", "dropped", "cached", "memory"};
    return words[way];
}

static json_t *speed_json(const struct disk_speed *s)
{
    return json_pack("{s:f, s:f, s:s}", "read_mb_per_s", disk_bytes_per_s(s) / 1e6, "read_mb", s->bytes / 1e6, "way", way_word(s->way));
}

json_t *doctor_disk_json(const struct doctor_disk *d, double free_bytes)
{
    json_t *j = d->here_known ? speed_json(&d->here) : json_object();
    if (j)
        json_object_set_new(j, "free_bytes", json_whole(free_bytes));
    return j;
}

json_t *doctor_data_json(const struct doctor_data *d)
{
    json_t *j = d->known ? speed_json(&d->speed) : json_null();
    if (d->known && j)
        json_object_set_new(j, "file", json_text(d->file));
    return j;
}

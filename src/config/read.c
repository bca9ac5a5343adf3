/* Reads YAML into the fields of the schema. Works on libyaml's node tree, two levels deep and no deeper, so an alias
 * that points at its own parent cannot lead it astray. */
#include <string.h>
#include <yaml.h>

#include "config/config_int.h"

enum { DEPTH_MAX = 16, EVENTS_MAX = 4096 };

static struct config_place line_of(const yaml_node_t *node)
{
    return (struct config_place){.line = (int)node->start_mark.line + 1};
}

static const char *kind_of(const yaml_node_t *node)
{
    switch (node->type) {
    case YAML_SEQUENCE_NODE: return "is a list";
    case YAML_MAPPING_NODE: return "is a section";
    default: return "is text";
    }
}

/* Types that YAML itself has are fine; an application's own ("!env x") mean something that we do not know. */
static bool has_foreign_tag(const yaml_node_t *node)
{
    static const char *const known[] = {"str", "int", "float", "null", "map", "seq"};
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *tag = (const char *)node->tag;
    if (strncmp(tag, prefix, sizeof prefix - 1))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(tag + sizeof prefix - 1, known[i]))
            return false;
    return true;
}

static enum status check_node(struct config_reader *r, const yaml_node_t *node, struct config_place at,
                              const char *name)
{
    char shown[CONFIG_SHOWN_MAX], tag[CONFIG_SHOWN_MAX];
    if (has_foreign_tag(node))
        return config_refuse(r, at, "%s has the YAML tag '%s'; write it without a tag", config_shown(shown, name),
                             config_shown(tag, (const char *)node->tag));
    if (node->type == YAML_SCALAR_NODE && strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return config_refuse(r, at, "%s has a NUL character in it", config_shown(shown, name));
    return OK;
}

static bool is_quoted(const yaml_node_t *node) { return node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE; }

static enum status read_list(struct config_reader *r, int key, yaml_document_t *doc, const yaml_node_t *node,
                             struct config_place at)
{
    const yaml_node_item_t *start = node->data.sequence.items.start, *top = node->data.sequence.items.top;
    enum status st = start == top ? config_list_clear(r, key, at) : OK;
    for (const yaml_node_item_t *i = start; i < top && st == OK; i++) {
        yaml_node_t *item = yaml_document_get_node(doc, *i);
        st = check_node(r, item, line_of(item), config_key(key).name);
        if (st == OK && item->type != YAML_SCALAR_NODE)
            st = config_refuse(r, line_of(item), "%s holds what %s; write %s", config_key(key).name, kind_of(item),
                               config_list_items(key));
        if (st == OK)
            st = config_list_add(r, key, line_of(item), (const char *)item->data.scalar.value, is_quoted(item), i == start);
    }
    if (st == OK)
        r->places[key] = at;
    return st;
}

static enum status read_value(struct config_reader *r, int key, yaml_document_t *doc, const yaml_node_t *node,
                              struct config_place at)
{
    const char *name = config_key(key).name;
    if (r->places[key].line)
        return config_refuse(r, at, "%s is given twice; it is already in line %d", name, r->places[key].line);
    const enum status st = check_node(r, node, at, name);
    if (st != OK)
        return st;
    if (node->type == YAML_SEQUENCE_NODE && config_key_is_list(key))
        return read_list(r, key, doc, node, at);
    if (node->type != YAML_SCALAR_NODE)
        return config_value_wrong_kind(r, key, at, kind_of(node));
    return config_value_read(r, key, at, (const char *)node->data.scalar.value, is_quoted(node));
}

/* The text of a mapping's key. */
static enum status read_name(struct config_reader *r, const yaml_node_t *node, const char **name)
{
    if (node->type != YAML_SCALAR_NODE)
        return config_refuse(r, line_of(node), "the name of a key is wanted here, and this %s", kind_of(node));
    *name = (const char *)node->data.scalar.value;
    return check_node(r, node, line_of(node), *name);
}

/* Sections whose keys make a run what it is; the others say how it works. */
static bool says_what_it_is(int section)
{
    const char *name = config_sections[section].name;
    return !strcmp(name, "model") || !strcmp(name, "data") || !strcmp(name, "train") || !strcmp(name, "k1");
}

static enum status read_section_key(struct config_reader *r, int section, yaml_document_t *doc, yaml_node_pair_t *pair)
{
    const yaml_node_t *key_node = yaml_document_get_node(doc, pair->key);
    const char *leaf = "";
    char name[256];
    const enum status st = read_name(r, key_node, &leaf);
    if (st != OK)
        return st;
    snprintf(name, sizeof name, "%s.%s", config_sections[section].name, leaf);
    const int key = config_key_find(name);
    if (key < 0)
        return r->saved && !says_what_it_is(section) ? OK : config_refuse_unknown(r, line_of(key_node), name);
    return read_value(r, key, doc, yaml_document_get_node(doc, pair->value), line_of(key_node));
}

/* A section with nothing in it is fine: all of it may be commented out. */
static enum status read_section(struct config_reader *r, int section, yaml_document_t *doc, yaml_node_t *node,
                                struct config_place at)
{
    const char *name = config_sections[section].name;
    enum status st = check_node(r, node, at, name);
    if (st == OK && r->section_lines[section])
        st = config_refuse(r, at, "section %s is given twice; it is already in line %d", name,
                           r->section_lines[section]);
    r->section_lines[section] = at.line;
    if (st != OK)
        return st;
    if (node->type == YAML_SCALAR_NODE && !is_quoted(node) &&
        config_text_is_null((const char *)node->data.scalar.value))
        return OK;
    if (node->type != YAML_MAPPING_NODE)
        return config_refuse(r, at, "%s %s; a section is wanted, with keys below it", name, kind_of(node));
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; st == OK && p < node->data.mapping.pairs.top; p++)
        st = read_section_key(r, section, doc, p);
    return st;
}

static enum status read_top_key(struct config_reader *r, yaml_document_t *doc, yaml_node_pair_t *pair)
{
    const yaml_node_t *key_node = yaml_document_get_node(doc, pair->key);
    yaml_node_t *value = yaml_document_get_node(doc, pair->value);
    const char *name = "";
    const enum status st = read_name(r, key_node, &name);
    if (st != OK)
        return st;
    const int section = *name ? config_section_find(name, strlen(name)) : -1, key = config_key_find(name);
    if (section >= 0)
        return read_section(r, section, doc, value, line_of(key_node));
    if (key < 0)
        return config_refuse_unknown(r, line_of(key_node), name);
    if (strchr(name, '.'))
        return config_refuse(r, line_of(key_node), "%s stands outside of its section; write %s below %s:", name,
                             config_key_leaf(key), config_sections[config_key_section(key)].name);
    return read_value(r, key, doc, value, line_of(key_node));
}

static enum status read_root(struct config_reader *r, yaml_document_t *doc)
{
    static const char wanted[] = "a config has at least 'model: {arch: gpt}'";
    yaml_node_t *root = yaml_document_get_root_node(doc);
    const int model = config_section_find("model", 5);
    enum status st = OK;
    if (!root || (root->type == YAML_SCALAR_NODE && !root->data.scalar.length))
        return config_refuse(r, (struct config_place){0}, "there is nothing in it; %s", wanted);
    if (root->type != YAML_MAPPING_NODE)
        return config_refuse(r, line_of(root), "the file %s; %s", kind_of(root), wanted);
    if (has_foreign_tag(root))
        return check_node(r, root, line_of(root), "the file");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; st == OK && p < root->data.mapping.pairs.top; p++)
        st = read_top_key(r, doc, p);
    if (st == OK && !r->section_lines[model])
        st = config_refuse(r, (struct config_place){0}, "there is no section model; %s", wanted);
    return st;
}

static int line_at_offset(const char *text, size_t length, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset && i < length; i++)
        line += text[i] == '\n';
    return line;
}

/* Does this line (from 0) start with spaces or tabs among which there is a tab? */
static bool is_tab_indented(const char *text, size_t length, size_t line)
{
    size_t i = 0;
    for (; i < length && line; i++)
        line -= text[i] == '\n';
    while (i < length && text[i] == ' ')
        i++;
    return i < length && text[i] == '\t';
}

/* libyaml fails without an error in some places where it gets no memory; what is wrong with a text it always names. */
static bool is_no_memory(const yaml_parser_t *p) { return p->error == YAML_MEMORY_ERROR || p->error == YAML_NO_ERROR; }

static enum status no_memory(struct config_reader *r)
{
    return error_set(r->err, CANNOT, "out of memory while '%.400s' was read", r->file);
}

static enum status refuse_syntax(struct config_reader *r, const yaml_parser_t *p, const char *text, size_t length)
{
    char context[128] = "";
    const size_t line = p->problem_mark.line;
    if (is_no_memory(p))
        return no_memory(r);
    if (p->error == YAML_READER_ERROR)
        return config_refuse(r, (struct config_place){.line = line_at_offset(text, length, p->problem_offset)},
                             "byte %zu is not text (%s); a config is a YAML file in UTF-8", p->problem_offset + 1,
                             p->problem);
    if (p->context && p->context_mark.line != line)
        snprintf(context, sizeof context, " (%s that starts in line %zu)", p->context, p->context_mark.line + 1);
    return config_refuse(r, (struct config_place){.line = (int)line + 1}, "not valid YAML at column %zu: %s%s%s",
                         p->problem_mark.column + 1, p->problem ? p->problem : "it cannot be read", context,
                         is_tab_indented(text, length, line) ? "; indent with spaces, not tabs" : "");
}

/* Nothing may follow the first document. */
static enum status read_end(struct config_reader *r, yaml_parser_t *parser, const char *text, size_t length)
{
    yaml_document_t doc;
    if (!yaml_parser_load(parser, &doc))
        return refuse_syntax(r, parser, text, length);
    enum status st = OK;
    if (yaml_document_get_root_node(&doc))
        st = config_refuse(r, (struct config_place){.line = (int)doc.start_mark.line + 1},
                           "a second YAML document starts here; a config is one document");
    yaml_document_delete(&doc);
    return st;
}

static int depth_change(yaml_event_type_t type)
{
    switch (type) {
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT: return 1;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return -1;
    default: return 0;
    }
}

/* libyaml's time grows with the square of the depth and of the number of anchors. So the events are counted first, and
 * what no config looks like is refused before its tree is built. A syntax error is left to the reader of the tree. */
static enum status check_shape(struct config_reader *r, yaml_parser_t *parser)
{
    yaml_event_t event;
    enum status st = OK;
    bool more = true;
    for (int n = 0, depth = 0; st == OK && more; n++) {
        if (!yaml_parser_parse(parser, &event))
            return is_no_memory(parser) ? no_memory(r) : OK;
        const struct config_place at = {.line = (int)event.start_mark.line + 1};
        depth += depth_change(event.type);
        more = event.type != YAML_STREAM_END_EVENT;
        if (depth > DEPTH_MAX)
            st = config_refuse(r, at,
                               "lists and sections inside each other, more than %d deep; a config has sections "
                               "of keys and nothing deeper",
                               DEPTH_MAX);
        else if (n > EVENTS_MAX)
            st = config_refuse(r, at, "more than %d keys and values up to here; is it the right file?", EVENTS_MAX);
        yaml_event_delete(&event);
    }
    return st;
}

static enum status read_document(struct config_reader *r, yaml_parser_t *parser, const char *text, size_t length)
{
    yaml_document_t doc;
    if (!yaml_parser_load(parser, &doc))
        return refuse_syntax(r, parser, text, length);
    enum status st = read_root(r, &doc);
    if (st == OK)
        st = read_end(r, parser, text, length);
    yaml_document_delete(&doc);
    return st;
}

/* Two passes over the same text, each with a parser of its own. */
enum status config_read_yaml(struct config_reader *r, const char *text, size_t length)
{
    enum status st = OK;
    for (int pass = 0; st == OK && pass < 2; pass++) {
        yaml_parser_t parser;
        if (!yaml_parser_initialize(&parser))
            return no_memory(r);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
        st = pass == 0 ? check_shape(r, &parser) : read_document(r, &parser, text, length);
        yaml_parser_delete(&parser);
    }
    return st;
}

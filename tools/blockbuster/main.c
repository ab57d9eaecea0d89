/* main.c - the program: one subcommand per thing that one wants of a model.
 */
#include "tool.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int (*const command_main[COMMANDS])(tool *) = {
    [CONVERT] = convert_main, [FUSE] = fuse_main,       [SELECT] = select_main,
    [DOT] = dot_main,         [COMPILE] = compile_main, [RUN] = run_main,
    [BENCH] = bench_main,     [REDUCE] = reduce_main,   [INFO] = info_main,
};

static void log_message(void *user, bb_log_level level, const char *message) {
  const settings *set = user;
  if (level <= BB_LOG_WARNING && !set->quiet) fprintf(stderr, "blockbuster: %s\n", message);
}

static int run_command(settings *set) {
  tool t = {.set = set};
  bb_context_options options = {
      .version = BB_VERSION, .log = log_message, .log_user = set, .verify = set->verify};
  if (bb_context_create(&options, &t.context) != BB_OK) {
    fprintf(stderr, "blockbuster: out of memory\n");
    return EXIT_REFUSED;
  }
  int code = set->model ? load(&t) : EXIT_GOOD;
  if (code == EXIT_GOOD) code = command_main[set->command](&t);
  bb_model_release(t.model);
  bb_program_destroy(t.program);
  bb_context_destroy(t.context);
  return code;
}

static int call(int argc, char **argv) {
  if (argc < 2) {
    print_usage(stderr);
    return EXIT_WRONG_CALL;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    print_usage(stdout);
    return EXIT_GOOD;
  }
  if (strcmp(argv[1], "--version") == 0) {
    uint32_t version = bb_version();
    printf("blockbuster %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
    return EXIT_GOOD;
  }
  for (command_id c = 0; c < COMMANDS; c++) {
    if (strcmp(argv[1], command_name[c]) != 0) continue;
    settings set = {.command = c};
    int code;
    if (!read_options(&set, argc - 1, argv + 1, &code)) return code;
    return run_command(&set);
  }
  fprintf(stderr, "blockbuster: there is no subcommand '%s'; see blockbuster --help\n", argv[1]);
  return EXIT_WRONG_CALL;
}

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error of the write, not the end */
  int code = call(argc, argv);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "blockbuster: standard output could not be written\n");
    if (code == EXIT_GOOD) code = EXIT_REFUSED;
  }
  return code;
}

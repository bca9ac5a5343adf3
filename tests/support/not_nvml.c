/* A library without any of the functions that are looked for. */
int not_nvml(void);
int not_nvml(void) { return 0; }

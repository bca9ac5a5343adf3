/* The MPI module: messages of a group of ranks as MPI carries them. All of it runs on the one thread that opened it. */
#include <mpi.h>
#include <stdlib.h>

#include "dist/module.h"

struct mpi {
    struct transport base;
    MPI_Comm comm;                      /* of our own: nothing else speaks there */
};

struct request { MPI_Request mpi; };

static MPI_Comm comm_of(struct transport *t) { return ((struct mpi *)t)->comm; }

static void *begun(struct request *r, int failed)
{
    if (!failed)
        return r;
    free(r);
    return NULL;
}

static void *mpi_send(struct transport *t, int to, enum channel c, const void *data, size_t bytes)
{
    struct request *r = bytes <= MESSAGE_MOST ? malloc(sizeof *r) : NULL;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): look and drop end it */
    return r ? begun(r, MPI_Isend(data, (int)bytes, MPI_BYTE, to, (int)c, comm_of(t), &r->mpi)) : NULL;
}

static void *mpi_receive(struct transport *t, int from, enum channel c, void *data, size_t bytes)
{
    struct request *r = bytes <= MESSAGE_MOST ? malloc(sizeof *r) : NULL;
    /* NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
    return r ? begun(r, MPI_Irecv(data, (int)bytes, MPI_BYTE, from == ANY_RANK ? MPI_ANY_SOURCE : from, (int)c, comm_of(t), &r->mpi))
             : NULL;
}

static enum carried_state mpi_look(struct transport *t, void *request)
{
    struct request *r = request;
    int done = 0;
    (void)t;
    const int failed = MPI_Test(&r->mpi, &done, MPI_STATUS_IGNORE);
    if (!failed && !done)
        return CARRY_PENDING;
    free(r);
    return failed ? CARRY_FAILED : CARRY_DONE;
}

static void mpi_drop(struct transport *t, void *request)
{
    struct request *r = request;
    (void)t;
    if (!r)
        return;
    MPI_Cancel(&r->mpi);
    MPI_Request_free(&r->mpi);
    free(r);
}

/* With a rank gone, MPI_Finalize would wait for it. */
static void mpi_close(struct transport *t, bool whole)
{
    if (whole) {
        MPI_Comm_free(&((struct mpi *)t)->comm);
        MPI_Finalize();
    }
    free(t);
}

static enum status mpi_open(struct transport **out, void *context, struct error *err)
{
    int have;
    (void)context;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &have) || have < MPI_THREAD_FUNNELED)
        return error_set(err, CANNOT, "MPI cannot be started by a program with threads");
    struct mpi *m = calloc(1, sizeof *m);
    if (!m || MPI_Comm_dup(MPI_COMM_WORLD, &m->comm)) {
        free(m);
        return error_set(err, CANNOT, "MPI gives no communicator");
    }
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    m->base = (struct transport){.send = mpi_send, .receive = mpi_receive, .look = mpi_look, .drop = mpi_drop, .close = mpi_close};
    MPI_Comm_rank(m->comm, &m->base.rank);
    MPI_Comm_size(m->comm, &m->base.size);
    *out = &m->base;
    return OK;
}

__attribute__((visibility("default"))) const struct mpi_module *hone_mpi_module(void);

const struct mpi_module *hone_mpi_module(void)
{
    static const struct mpi_module module = {HONE_MPI_BUILD, mpi_open};
    return &module;
}

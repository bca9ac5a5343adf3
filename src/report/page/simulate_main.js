/* The parts of the page of hone simulate. */
drawPage([overview, scaling, byRanks, byBucket]);

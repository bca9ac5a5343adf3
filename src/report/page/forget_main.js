/* The parts of the page of hone forget. */
drawPage([overview, tradeoff, configsTable, matrices, tree, nodesOverTime, nodesByDomain, comparisons]);

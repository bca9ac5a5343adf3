/* The parts of the page of hone tune. */
drawPage([overview, waterfall, predictions, points, gates, batches, sizes, roadmap, dropped, tunedConfig]);
